import type { ImportLoginMethod } from '../core/import-user.js'
import { corePhoneNumber, coreTenantIds, lowerCased } from './stored-form.js'

/** A login method of a record or of an account. */
export type LoginSource = Omit<ImportLoginMethod, 'recipeId'> & { readonly recipeId: string }

interface LoginHolder {
  readonly loginMethods: readonly LoginSource[]
}

/** A login: its kind, and its values in the form that the core stores. */
type Login =
  | readonly ['email', string]
  | readonly ['phone', string]
  | readonly ['third party', string, string]

/**
 * Returns a key for each login in each tenant. If two users share a key, only one of them can become an
 * account, because a recipe accepts a login once per tenant and primary users share no login. The keys
 * contain account data.
 */
export function loginKeysOf({ loginMethods }: LoginHolder): string[] {
  const keys = new Set(recipeKeysOf({ loginMethods }))
  if (becomesPrimary(loginMethods)) {
    const tenantIds = [...new Set(loginMethods.flatMap((each) => coreTenantIds(each.tenantIds)))]
    const logins = loginMethods.flatMap(accountInfoOf)
    for (const key of keysOf('primary', tenantIds, logins)) keys.add(key)
  }
  return [...keys]
}

/**
 * Whether the core creates a primary user from these methods. Cores 10.1 and 11.4 do so if there are
 * several; 12.x requires `isPrimary`, hence the warning `no_primary`.
 */
export const becomesPrimary = (loginMethods: readonly Pick<LoginSource, 'isPrimary'>[]): boolean =>
  loginMethods.length > 1 || loginMethods.some(({ isPrimary }) => isPrimary === true)

/** Returns the indexes of methods that repeat a login of an earlier method. */
export function repeatedMethodsOf({ loginMethods }: LoginHolder): number[] {
  const recipes = new Set(loginMethods.map(({ recipeId }) => recipeId))
  if (recipes.size === loginMethods.length) return []
  const seen = new Set<string>()
  return loginMethods.flatMap((method, index) => {
    const keys = keysOf(method.recipeId, coreTenantIds(method.tenantIds), loginsOf(method))
    const isRepeated = keys.some((key) => seen.has(key))
    for (const key of keys) seen.add(key)
    return isRepeated ? [index] : []
  })
}

const keysOf = (of: string, tenantIds: readonly string[], logins: readonly Login[]): string[] =>
  tenantIds.flatMap((tenantId) => logins.map((login) => JSON.stringify([of, tenantId, ...login])))

/** Returns the keys of the logins to sign in with, without the keys for primary users. */
export const recipeKeysOf = ({ loginMethods }: LoginHolder): string[] =>
  loginMethods.flatMap((method) =>
    keysOf(method.recipeId, coreTenantIds(method.tenantIds), loginsOf(method)),
  )

/** Returns the logins that the recipe accepts only once. */
function loginsOf(method: LoginSource): Login[] {
  if (method.recipeId !== 'thirdparty') return accountInfoOf(method)
  return [thirdPartyOf(method)]
}

/** Returns the account info that no two primary users share, whatever their recipes. */
function accountInfoOf(method: LoginSource): Login[] {
  const { recipeId, email, phoneNumber } = method
  const logins: Login[] = []
  if (email !== undefined) logins.push(['email', lowerCased(email)])
  if (recipeId === 'thirdparty') logins.push(thirdPartyOf(method))
  if (recipeId === 'passwordless' && phoneNumber !== undefined) {
    logins.push(['phone', corePhoneNumber(phoneNumber)])
  }
  return logins
}

const thirdPartyOf = ({ thirdPartyId = '', thirdPartyUserId = '' }: LoginSource): Login => [
  'third party',
  thirdPartyId,
  thirdPartyUserId,
]
