import type { AccountInfo, CoreLoginMethod, CoreUser } from '../core/core-client.js'
import type { ImportLoginMethod } from '../core/import-user.js'
import { corePhoneNumber, coreTenantIds, lowerCased, trimmed } from './normalise.js'

/** A login method of a record or of an account. */
export type LoginSource = Omit<ImportLoginMethod, 'recipeId'> & { readonly recipeId: string }

/** A user, of a record or of the core, by its logins. */
export interface LoginHolder {
  readonly loginMethods: readonly LoginSource[]
}

/** A login in a tenant, which only one account of its scope may have. */
export interface Login {
  /** A recipe, or `PRIMARY`. */
  readonly scope: string
  readonly tenantId: string
  readonly info: AccountInfo
}

/** Returns a login method of an account in the form of a record. */
const loginSourceOf = ({ thirdParty, ...method }: CoreLoginMethod): LoginSource =>
  thirdParty === undefined
    ? method
    : { ...method, thirdPartyId: thirdParty.id, thirdPartyUserId: thirdParty.userId }

/** Returns an account by its logins. */
export const holderOf = ({
  isPrimaryUser: isPrimary,
  loginMethods,
}: Pick<CoreUser, 'isPrimaryUser' | 'loginMethods'>): LoginHolder => ({
  loginMethods: loginMethods.map((method) => ({ ...loginSourceOf(method), isPrimary })),
})

/** The scope of all primary users, whatever their recipes. */
export const PRIMARY = 'primary'

/**
 * Yields each login in each tenant: a recipe accepts a login once per tenant, and no two primary users share
 * an account info. It may yield a login several times; those of the recipes come first.
 */
function* loginsOf({ loginMethods }: LoginHolder): Generator<Login> {
  for (const method of loginMethods) {
    // The e-mail address of a third-party method is not a login.
    const infos = accountInfosOf(method).filter(
      (info) => method.recipeId !== 'thirdparty' || !('email' in info),
    )
    yield* inTenants(method.recipeId, coreTenantIds(method.tenantIds), infos)
  }
  if (!becomesPrimary(loginMethods)) return
  const tenantIds = new Set(loginMethods.flatMap((method) => coreTenantIds(method.tenantIds)))
  yield* inTenants(PRIMARY, tenantIds, loginMethods.flatMap(accountInfosOf))
}

function* inTenants(
  scope: string,
  tenantIds: Iterable<string>,
  infos: readonly AccountInfo[],
): Generator<Login> {
  for (const tenantId of tenantIds) for (const info of infos) yield { scope, tenantId, info }
}

/**
 * Whether the core creates a primary user from these methods. Cores 10.1 and 11.4 do so if there are
 * several; 12.x requires `isPrimary`, hence the warning `no_primary`.
 */
const becomesPrimary = (loginMethods: readonly Pick<LoginSource, 'isPrimary'>[]): boolean =>
  loginMethods.length > 1 || loginMethods.some(({ isPrimary }) => isPrimary === true)

function accountInfosOf(method: LoginSource): AccountInfo[] {
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

/** Returns each login in each tenant, by its key. */
export const loginsByKey = (holder: LoginHolder): ReadonlyMap<string, Login> =>
  new Map(Array.from(loginsOf(holder), (login) => [loginKey(login), login]))

/**
 * Returns a key for each login in each tenant. If two users share a key, only one of them can become an
 * account. The keys contain account data.
 */
export const loginKeysOf = (holder: LoginHolder): string[] => [...loginsByKey(holder).keys()]

/** Returns the keys of the logins to sign in with, without the keys for primary users. */
export const recipeKeysOf = (holder: LoginHolder): string[] =>
  [...loginsOf(holder)].filter(({ scope }) => scope !== PRIMARY).map(loginKey)

function loginKey({ scope, tenantId, info }: Login): string {
  const stored = 'phoneNumber' in info ? { phoneNumber: corePhoneNumber(info.phoneNumber) } : info
  return JSON.stringify([scope, tenantId, stored])
}
