import type { AccountInfo, CallOptions, CoreClient, CoreUser } from '../core/core-client.js'
import { type Login, type LoginHolder, loginsOf, PRIMARY } from '../record-validation/login-keys.js'

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
  for (const login of soughtLogins(user)) {
    for (const account of await core.usersWith(login.tenantId, login.info, options)) {
      const code = conflictWith(account, login)
      if (code === undefined) continue
      return { heldBy: (await core.coreIdOf(account.id, options)) ?? account.id, code }
    }
  }
  return undefined
}

/** An identity, with which the core is asked for its account and for its logins. */
interface AskedIdentity {
  readonly externalUserId: string
  readonly user: LoginHolder
}

/**
 * Returns `own` if the external id has an account, or else the account that keeps the user from getting one.
 *
 * @throws CoreError if a call of the core fails.
 */
export async function findHolder(
  core: CoreClient,
  { externalUserId, user }: AskedIdentity,
  options: CallOptions,
): Promise<'own' | TakenLogin | undefined> {
  const ownId = () => core.coreIdOf(externalUserId, options)
  if ((await ownId()) !== undefined) return 'own'
  const taken = await findTakenLogin(core, user, options)
  // `migrationEndpoint` may have created the account between the two look-ups.
  return taken !== undefined && (await ownId()) === taken.heldBy ? 'own' : taken
}

interface SoughtLogin extends Omit<Login, 'scope'> {
  /** The recipes of the user's methods with this login, and `PRIMARY` if the user becomes a primary user. */
  readonly scopes: Set<string>
}

/** Returns each login to look up once, even if several methods have it. */
function soughtLogins(user: LoginHolder): Iterable<SoughtLogin> {
  const sought = new Map<string, SoughtLogin>()
  for (const { scope, tenantId, info } of loginsOf(user)) {
    const key = JSON.stringify([tenantId, info])
    const login = sought.get(key) ?? { tenantId, info, scopes: new Set() }
    sought.set(key, login)
    login.scopes.add(scope)
  }
  return sought.values()
}

/** A recipe accepts a login once per tenant, and no two primary users may have the same account info. */
function conflictWith(
  account: CoreUser,
  { scopes, tenantId, info }: SoughtLogin,
): TakenLogin['code'] | undefined {
  const method = account.loginMethods.find(
    (each) => scopes.has(each.recipeId) && each.tenantIds.includes(tenantId) && hasInfo(each, info),
  )
  if (method !== undefined) return conflictCode(method.recipeId, info)
  return scopes.has(PRIMARY) && account.isPrimaryUser ? 'E022' : undefined
}

function conflictCode(recipeId: string, info: AccountInfo): TakenLogin['code'] {
  if (recipeId === 'emailpassword') return 'E003'
  if (recipeId === 'thirdparty') return 'E005'
  return 'email' in info ? 'E006' : 'E007'
}

function hasInfo(method: CoreUser['loginMethods'][number], info: AccountInfo): boolean {
  if ('email' in info) return method.email === info.email
  // The core found the account by this number, and may store it in another form.
  if ('phoneNumber' in info) return method.phoneNumber !== undefined
  const { thirdParty } = method
  return thirdParty?.id === info.thirdPartyId && thirdParty.userId === info.thirdPartyUserId
}
