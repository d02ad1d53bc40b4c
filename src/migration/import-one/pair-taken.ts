import { findHolder } from '../account/conflicting-account.js'
import type { CallOptions, CoreClient } from '../core/core-client.js'
import type { ImportUser } from '../core/import-user.js'

/** All that cores from 11.0 to 12.0.8 say of a provider's pair that is taken; others say E005. */
const PAIR_MAY_BE_TAKEN = 'translated'

interface Refused {
  readonly core: CoreClient
  readonly user: ImportUser
  readonly options: CallOptions
}

/** Whether the core has refused the user because another account has a provider's pair of his. */
export async function isPairTaken(
  texts: readonly string[],
  { core, user, options }: Refused,
): Promise<boolean> {
  if (!texts.every((text) => text.trim() === PAIR_MAY_BE_TAKEN)) return false
  // By nothing but the pair: an e-mail address that is taken has a code of its own.
  const loginMethods = user.loginMethods
    .filter(({ recipeId }) => recipeId === 'thirdparty')
    .map(({ email: _, isPrimary: __, ...method }) => method)
  return (await findHolder(core, { loginMethods }, options)) !== undefined
}
