import type { ImportLoginMethod } from '../core/import-user.js'
import { lowerCased } from './core-trim.js'
import { corePhoneNumber } from './phone-number.js'
import { coreTenantIds } from './tenant-ids.js'

/** What is read of a login method, of a record or of an account. */
export type LoginSource = Omit<ImportLoginMethod, 'recipeId'> & { readonly recipeId: string }

interface LoginHolder {
  readonly loginMethods: readonly LoginSource[]
}

/** By what a method is found: the kind of account info, and what the core keeps of it. */
type Login =
  | readonly ['email', string]
  | readonly ['phone', string]
  | readonly ['third party', string, string]

/**
 * A text for each login in each tenant. Two users with a text in common do not both become accounts:
 * a recipe takes a login once in a tenant, and so do all primary users together. Holds account data.
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
 * Whether the core makes a primary user of these methods. Cores 10.1 and 11.4 do so wherever there are
 * several; 12.x does not without `isPrimary`, which is the warning `no_primary`.
 */
export const becomesPrimary = (loginMethods: readonly Pick<LoginSource, 'isPrimary'>[]): boolean =>
  loginMethods.length > 1 || loginMethods.some(({ isPrimary }) => isPrimary === true)

/** Places of the methods that have a login of a method before them. */
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

/** The keys by which the methods are signed in with: without those that only primary users share. */
export const recipeKeysOf = ({ loginMethods }: LoginHolder): string[] =>
  loginMethods.flatMap((method) =>
    keysOf(method.recipeId, coreTenantIds(method.tenantIds), loginsOf(method)),
  )

/** What the recipe takes once. */
function loginsOf(method: LoginSource): Login[] {
  if (method.recipeId !== 'thirdparty') return accountInfoOf(method)
  return [thirdPartyOf(method)]
}

/** What no two primary users share, whatever their recipes. */
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
