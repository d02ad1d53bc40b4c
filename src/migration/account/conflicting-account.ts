import type { AccountInfo, CallOptions, CoreClient } from '../core/core-client.js'
import type { ImportLoginMethod, ImportUser } from '../core/import-user.js'
import type { CoreUser } from '../core/reply.js'
import { becomesPrimary } from '../record-validation/login-keys.js'
import { coreTenantIds, lowerCased, trimmed } from '../record-validation/stored-form.js'

/** A login of a user that an account of the core already has. */
export interface TakenLogin {
  /** The core's id of that account. */
  readonly heldBy: string
  /** The code with which the core refuses the user. */
  readonly code: 'E003' | 'E005' | 'E006' | 'E007' | 'E022'
}

/** Returns the core's id of the account that `findTakenLogin` finds. */
export const findConflictingAccount = async (
  core: CoreClient,
  { loginMethods }: Pick<ImportUser, 'loginMethods'>,
  options: CallOptions = {},
): Promise<string | undefined> => (await findTakenLogin(core, { loginMethods }, options))?.heldBy

/**
 * Finds an account that has one of the user's logins, so that the core refuses to import the user. It may
 * be the user's own account without its external id. Returns `undefined` if there is none.
 *
 * @throws CoreError if a call of the core fails.
 */
export async function findTakenLogin(
  core: CoreClient,
  { loginMethods }: Pick<ImportUser, 'loginMethods'>,
  options: CallOptions = {},
): Promise<TakenLogin | undefined> {
  for (const { tenantId, info, recipeIds } of soughtLogins(loginMethods)) {
    for (const account of await core.usersWith(tenantId, info, options)) {
      const code = conflictWith(account, { tenantId, info, recipeIds })
      if (code === undefined) continue
      return { heldBy: (await core.coreIdOf(account.id, options)) ?? account.id, code }
    }
  }
  return undefined
}

interface SoughtLogin {
  readonly tenantId: string
  readonly info: AccountInfo
  /** Recipes of the user that may have the login only once per tenant; `primary` stands for all primary users. */
  readonly recipeIds: Set<string>
}

const PRIMARY = 'primary'

/** Returns each login to look up once, even if several methods have it. */
function soughtLogins(loginMethods: readonly ImportLoginMethod[]): Iterable<SoughtLogin> {
  const sought = new Map<string, SoughtLogin>()
  const seek = (tenantId: string, info: AccountInfo, recipeId: string): void => {
    const key = JSON.stringify([tenantId, info])
    const login = sought.get(key) ?? { tenantId, info, recipeIds: new Set() }
    sought.set(key, login)
    login.recipeIds.add(recipeId)
  }
  for (const method of loginMethods) {
    for (const tenantId of coreTenantIds(method.tenantIds)) {
      for (const info of loginsOf(method)) seek(tenantId, info, method.recipeId)
    }
  }
  if (!becomesPrimary(loginMethods)) return sought.values()
  const tenantIds = new Set(loginMethods.flatMap((method) => coreTenantIds(method.tenantIds)))
  for (const tenantId of tenantIds) {
    for (const info of loginMethods.flatMap(accountInfosOf)) seek(tenantId, info, PRIMARY)
  }
  return sought.values()
}

/** A recipe accepts a login once per tenant, and no two primary users may have the same account info. */
function conflictWith(
  account: CoreUser,
  { recipeIds, tenantId, info }: SoughtLogin,
): TakenLogin['code'] | undefined {
  const method = account.loginMethods.find(
    (each) => recipeIds.has(each.recipeId) && each.tenantIds.includes(tenantId) && has(each, info),
  )
  if (method !== undefined) return codeOf(method.recipeId, info)
  return recipeIds.has(PRIMARY) && account.isPrimaryUser ? 'E022' : undefined
}

function codeOf(recipeId: string, info: AccountInfo): TakenLogin['code'] {
  if (recipeId === 'emailpassword') return 'E003'
  if (recipeId === 'thirdparty') return 'E005'
  return 'email' in info ? 'E006' : 'E007'
}

function has(method: CoreUser['loginMethods'][number], info: AccountInfo): boolean {
  if ('email' in info) return method.email === info.email
  // The core found the account by the number, so its form is not compared again.
  if ('phoneNumber' in info) return method.phoneNumber !== undefined
  const { thirdParty } = method
  return thirdParty?.id === info.thirdPartyId && thirdParty.userId === info.thirdPartyUserId
}

/** Returns the logins of a method. The e-mail address of a third-party method is not a login. */
const loginsOf = (method: ImportLoginMethod): AccountInfo[] =>
  accountInfosOf(method).filter((info) => method.recipeId !== 'thirdparty' || !('email' in info))

/** Returns the account info of a method, which no two primary users share, whatever their recipes. */
function accountInfosOf(method: ImportLoginMethod): AccountInfo[] {
  const { recipeId, email, phoneNumber, thirdPartyId, thirdPartyUserId } = method
  const infos: AccountInfo[] = []
  if (recipeId === 'thirdparty' && thirdPartyId !== undefined && thirdPartyUserId !== undefined) {
    infos.push({ thirdPartyId, thirdPartyUserId })
  }
  if (email !== undefined) infos.push({ email: lowerCased(email) })
  if (recipeId === 'passwordless' && phoneNumber !== undefined) {
    infos.push({ phoneNumber: trimmed(phoneNumber) })
  }
  return infos
}
