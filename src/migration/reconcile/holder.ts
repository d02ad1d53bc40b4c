import type { AccountInfo, CallOptions, CoreClient } from '../core/core-client.js'
import type { ImportLoginMethod, ImportUser } from '../core/import-user.js'
import type { CoreUser } from '../core/reply.js'
import { lowerCased, trimmed } from '../user/core-text.js'
import { coreTenantIds } from '../user/tenant-ids.js'

/** A login that an account of the core has already. */
export interface TakenLogin {
  /** The account's id in the core. */
  readonly heldBy: string
  /** With which the core refuses the user. */
  readonly code: 'E003' | 'E005' | 'E006' | 'E007' | 'E022'
}

/** The core's id of the account that `findTakenLogin` finds. */
export const findHolder = async (
  core: CoreClient,
  user: Pick<ImportUser, 'loginMethods'>,
  options: CallOptions = {},
): Promise<string | undefined> => (await findTakenLogin(core, user, options))?.heldBy

/**
 * Finds a login of a user that an account has: another account, so that the user cannot have one, or the
 * user's own without its external id. `undefined` where there is none.
 *
 * @throws CoreError when the core cannot be asked.
 */
export async function findTakenLogin(
  core: CoreClient,
  user: Pick<ImportUser, 'loginMethods'>,
  options: CallOptions = {},
): Promise<TakenLogin | undefined> {
  const isPrimary = user.loginMethods.some((method) => method.isPrimary === true)
  for (const method of user.loginMethods) {
    for (const tenantId of coreTenantIds(method.tenantIds)) {
      for (const info of infosOf(method, isPrimary)) {
        const accounts = await core.usersWith(tenantId, info, options)
        const login = { recipeId: method.recipeId, tenantId, isPrimary, info }
        const holder = accounts.find((account) => holds(account, login))
        if (holder === undefined) continue
        const heldBy = (await core.coreIdOf(holder.id, options)) ?? holder.id
        return { heldBy, code: hasLogin(holder, login) ? codeOf(login) : 'E022' }
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
function holds(account: CoreUser, login: SoughtLogin): boolean {
  return (login.isPrimary && account.isPrimaryUser) || hasLogin(account, login)
}

const hasLogin = (account: CoreUser, { recipeId, tenantId, info }: SoughtLogin): boolean =>
  account.loginMethods.some(
    (method) =>
      method.recipeId === recipeId && method.tenantIds.includes(tenantId) && has(method, info),
  )

function codeOf({ recipeId, info }: SoughtLogin): TakenLogin['code'] {
  if (recipeId === 'emailpassword') return 'E003'
  if (recipeId === 'thirdparty') return 'E005'
  return 'email' in info ? 'E006' : 'E007'
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
