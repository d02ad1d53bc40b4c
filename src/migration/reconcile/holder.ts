import type { AccountInfo, CallOptions, CoreClient } from '../core/core-client.js'
import type { ImportLoginMethod, ImportUser } from '../core/import-user.js'
import type { CoreUser } from '../core/reply.js'
import { lowerCased, trimmed } from '../user/core-text.js'
import { coreTenantIds } from '../user/tenant-ids.js'

/**
 * The core's id of an account that holds a login of a user, so that the user cannot have one, or that
 * is the user's own without its external id. `undefined` where there is none.
 *
 * @throws CoreError when the core cannot be asked.
 */
export async function findHolder(
  core: CoreClient,
  user: Pick<ImportUser, 'loginMethods'>,
  options: CallOptions = {},
): Promise<string | undefined> {
  const isPrimary = user.loginMethods.some((method) => method.isPrimary === true)
  for (const method of user.loginMethods) {
    for (const tenantId of coreTenantIds(method.tenantIds)) {
      for (const info of infosOf(method, isPrimary)) {
        const accounts = await core.usersWith(tenantId, info, options)
        const login = { recipeId: method.recipeId, tenantId, isPrimary, info }
        const holder = accounts.find((account) => holds(account, login))
        if (holder !== undefined) return (await core.coreIdOf(holder.id, options)) ?? holder.id
      }
    }
  }
  return undefined
}

interface SoughtLogin {
  readonly recipeId: string
  readonly tenantId: string
  readonly isPrimary: boolean
  readonly info: AccountInfo
}

/** A recipe takes a login once in a tenant; primary users share no account info at all. */
function holds(account: CoreUser, { recipeId, tenantId, isPrimary, info }: SoughtLogin): boolean {
  if (isPrimary && account.isPrimaryUser) return true
  return account.loginMethods.some(
    (method) =>
      method.recipeId === recipeId && method.tenantIds.includes(tenantId) && has(method, info),
  )
}

function has(method: CoreUser['loginMethods'][number], info: AccountInfo): boolean {
  if ('email' in info) return method.email === lowerCased(info.email)
  // The core has found the account by the number, and knows better than we how it is written.
  if ('phoneNumber' in info) return method.phoneNumber !== undefined
  const { thirdParty } = method
  return thirdParty?.id === info.thirdPartyId && thirdParty.userId === info.thirdPartyUserId
}

/** The e-mail address of a third party is no login, but is taken by a primary user. */
function infosOf(method: ImportLoginMethod, isPrimary: boolean): AccountInfo[] {
  const { recipeId, email, phoneNumber, thirdPartyId, thirdPartyUserId } = method
  const infos: AccountInfo[] = []
  if (thirdPartyId !== undefined && thirdPartyUserId !== undefined) {
    infos.push({ thirdPartyId, thirdPartyUserId })
  }
  if (email !== undefined && (isPrimary || recipeId !== 'thirdparty')) infos.push({ email })
  if (recipeId === 'passwordless' && phoneNumber !== undefined) {
    infos.push({ phoneNumber: trimmed(phoneNumber) })
  }
  return infos
}
