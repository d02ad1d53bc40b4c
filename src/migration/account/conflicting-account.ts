import type { AccountInfo, CallOptions, CoreClient } from '../core/core-client.js'
import type { ImportLoginMethod, ImportUser } from '../core/import-user.js'
import type { CoreUser } from '../core/reply.js'
import { lowerCased, trimmed } from '../record-validation/core-trim.js'
import { becomesPrimary } from '../record-validation/login-keys.js'
import { coreTenantIds } from '../record-validation/tenant-ids.js'

/** A login of a user that an account of the core has already. */
export interface TakenLogin {
  /** The account's id in the core. */
  readonly heldBy: string
  /** The code with which the core refuses the user. */
  readonly code: 'E003' | 'E005' | 'E006' | 'E007' | 'E022'
}

/** The core's id of the account that `findTakenLogin` finds. */
export const findHolder = async (
  core: CoreClient,
  { loginMethods }: Pick<ImportUser, 'loginMethods'>,
  options: CallOptions = {},
): Promise<string | undefined> => (await findTakenLogin(core, { loginMethods }, options))?.heldBy

/**
 * Finds an account with one of the user's logins. The core then refuses to import the user. It may also be
 * the user's own account, without its external id. `undefined` when there is none.
 *
 * @throws CoreError when the core cannot be asked.
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
  /** The user's recipes that must not have the login twice in a tenant; `primary` for all primary users. */
  readonly recipeIds: Set<string>
}

const PRIMARY = 'primary'

/** Each login to look up, once, although several methods may have it. */
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

/** A recipe takes a login once in a tenant; primary users share no account info at all. */
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
  // The core has found the account by the number, and knows better than we how it is written.
  if ('phoneNumber' in info) return method.phoneNumber !== undefined
  const { thirdParty } = method
  return thirdParty?.id === info.thirdPartyId && thirdParty.userId === info.thirdPartyUserId
}

/** The e-mail address of a third party is no login. */
const loginsOf = (method: ImportLoginMethod): AccountInfo[] =>
  accountInfosOf(method).filter((info) => method.recipeId !== 'thirdparty' || !('email' in info))

/** What no two primary users share, whatever their recipes. */
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
