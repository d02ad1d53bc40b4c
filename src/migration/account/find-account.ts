import type { CallOptions, CoreClient, CoreUser } from '../core/core-client.js'
import type { ImportUser } from '../core/import-user.js'
import {
  holderOf,
  type Login,
  type LoginHolder,
  loginKeysOf,
  loginsByKey,
  PRIMARY,
} from '../record-validation/login-keys.js'

/** A user with the external id that the core stores. */
export interface Identity<User extends LoginHolder = ImportUser> {
  readonly externalUserId: string
  readonly user: User
}

/** An account, and the core's id of it. */
export interface FoundAccount {
  readonly coreUserId: string
  readonly user: CoreUser
}

/**
 * Returns the account with this external id; `undefined` if there is none.
 *
 * @throws CoreError if a call of the core fails.
 */
export async function findAccount(
  core: CoreClient,
  externalUserId: string,
  options: CallOptions = {},
): Promise<FoundAccount | undefined> {
  const coreUserId = await core.coreIdOf(externalUserId, options)
  const user = coreUserId === undefined ? undefined : await core.user(coreUserId, options)
  return coreUserId === undefined || user === undefined ? undefined : { coreUserId, user }
}

/** A login of a user that an account of the core already has. */
export interface TakenLogin {
  /** The core's id of that account. */
  readonly heldBy: string
  /** The code with which the core refuses the user. */
  readonly code: 'E003' | 'E005' | 'E006' | 'E007' | 'E022'
}

/**
 * Finds an account that has one of the user's logins, because of which the core refuses to import the user. It may
 * be an account of this very user that lacks the external id. Returns `undefined` if there is none.
 *
 * @throws CoreError if a call of the core fails.
 */
export async function findTakenLogin(
  core: CoreClient,
  user: LoginHolder,
  options: CallOptions = {},
): Promise<TakenLogin | undefined> {
  const logins = loginsByKey(user)
  const lookUps = new Set<string>()
  for (const { tenantId, info } of logins.values()) {
    const lookUp = JSON.stringify([tenantId, info])
    if (lookUps.has(lookUp)) continue
    lookUps.add(lookUp)
    for (const account of await core.usersWith(tenantId, info, options)) {
      const key = loginKeysOf(holderOf(account)).find((each) => logins.has(each))
      const login = key === undefined ? undefined : logins.get(key)
      if (login === undefined) continue
      return {
        heldBy: (await core.coreIdOf(account.id, options)) ?? account.id,
        code: codeOf(login),
      }
    }
  }
  return undefined
}

function codeOf({ scope, info }: Login): TakenLogin['code'] {
  if (scope === PRIMARY) return 'E022'
  if (scope === 'emailpassword') return 'E003'
  if (scope === 'thirdparty') return 'E005'
  return 'email' in info ? 'E006' : 'E007'
}

/**
 * Returns `own` if the external id has an account, or else the account that keeps the user from getting one.
 *
 * @throws CoreError if a call of the core fails.
 */
export async function findHolder(
  core: CoreClient,
  { externalUserId, user }: Identity<LoginHolder>,
  options: CallOptions,
): Promise<'own' | TakenLogin | undefined> {
  const ownId = () => core.coreIdOf(externalUserId, options)
  if ((await ownId()) !== undefined) return 'own'
  const taken = await findTakenLogin(core, user, options)
  // `migrationEndpoint` may have created the account between the two look-ups.
  return taken !== undefined && (await ownId()) === taken.heldBy ? 'own' : taken
}
