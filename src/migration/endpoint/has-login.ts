import type { ImportUser } from '../core/import-user.js'
import type { CoreLoginMethod, CoreUser } from '../core/reply.js'
import { type LoginSource, recipeKeysOf } from '../record-validation/login-keys.js'

/**
 * Whether the account can be signed in to by a login of the record: the same recipe, a tenant in
 * common, and the same e-mail address, phone number or provider's pair, as the core keeps them.
 */
export function holdsLoginOf(account: CoreUser, record: ImportUser): boolean {
  const held = new Set(recipeKeysOf({ loginMethods: account.loginMethods.map(sourceOf) }))
  return recipeKeysOf(record).some((key) => held.has(key))
}

const sourceOf = ({ thirdParty, ...method }: CoreLoginMethod): LoginSource =>
  thirdParty === undefined
    ? method
    : { ...method, thirdPartyId: thirdParty.id, thirdPartyUserId: thirdParty.userId }
