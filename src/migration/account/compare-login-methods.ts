import type { ImportLoginMethod } from '../core/import-user.js'
import type { CoreLoginMethod } from '../core/reply.js'
import {
  coreInteger,
  corePhoneNumber,
  coreTenantIds,
  lowerCased,
} from '../record-validation/stored-form.js'

/** A method of a record, in the form in which the core returns it. */
interface WantedMethod {
  readonly recipeId: string
  readonly tenantIds: readonly string[]
  readonly verified: boolean
  /** Not compared if the record has none, because the core then uses the time of the import. */
  readonly timeJoined: number | undefined
  readonly email: string | undefined
  readonly phoneNumber: string | undefined
  readonly thirdPartyId: string | undefined
  readonly thirdPartyUserId: string | undefined
}

/** Compares login methods in any order. A method that only the account has is a difference too. */
export function compareLoginMethods(
  record: readonly ImportLoginMethod[],
  account: readonly CoreLoginMethod[],
): string[] {
  const left = [...account]
  const differences = record.flatMap((method, index) => {
    const field = `loginMethods[${index}]`
    const wanted = wantedOf(method)
    const place = placeOf(wanted, left)
    const [found] = place === undefined ? [] : left.splice(place, 1)
    return found === undefined ? [field] : differencesOf(wanted, found, field)
  })
  return left.length === 0 ? differences : [...differences, 'loginMethods']
}

function wantedOf(method: ImportLoginMethod): WantedMethod {
  const { recipeId, email, timeJoinedInMSSinceEpoch: timeJoined } = method
  const isThirdParty = recipeId === 'thirdparty'
  const phoneNumber = recipeId === 'passwordless' ? method.phoneNumber : undefined
  return {
    recipeId,
    tenantIds: coreTenantIds(method.tenantIds),
    // The core returns a phone number without an e-mail address as verified, whatever the record has.
    verified: (phoneNumber !== undefined && email === undefined) || method.isVerified === true,
    timeJoined: timeJoined === undefined ? undefined : coreInteger(timeJoined, 64),
    email: email === undefined ? undefined : lowerCased(email),
    phoneNumber: phoneNumber === undefined ? undefined : corePhoneNumber(phoneNumber),
    thirdPartyId: isThirdParty ? method.thirdPartyId : undefined,
    thirdPartyUserId: isThirdParty ? method.thirdPartyUserId : undefined,
  }
}

/** Several methods may have the same login in different tenants. Prefers the method with the same tenants. */
function placeOf(wanted: WantedMethod, methods: readonly CoreLoginMethod[]): number | undefined {
  let first: number | undefined
  for (const [place, method] of methods.entries()) {
    if (!isSameLogin(wanted, method)) continue
    if (areSameTenants(wanted.tenantIds, method.tenantIds)) return place
    first ??= place
  }
  return first
}

function isSameLogin(wanted: WantedMethod, method: CoreLoginMethod): boolean {
  if (wanted.recipeId !== method.recipeId) return false
  const { email, phoneNumber, thirdPartyId, thirdPartyUserId } = wanted
  if (wanted.recipeId === 'thirdparty') {
    const { thirdParty } = method
    return thirdParty?.id === thirdPartyId && thirdParty?.userId === thirdPartyUserId
  }
  if (email !== undefined && method.email === email) return true
  return phoneNumber !== undefined && method.phoneNumber === phoneNumber
}

function differencesOf(wanted: WantedMethod, found: CoreLoginMethod, field: string): string[] {
  const { tenantIds, verified, timeJoined, email, phoneNumber } = wanted
  const differences: string[] = []
  if (!areSameTenants(tenantIds, found.tenantIds)) differences.push(`${field}.tenantIds`)
  // Only a missing verification is a difference, because signing in with an e-mailed code verifies the address.
  if (verified && !found.verified) differences.push(`${field}.isVerified`)
  if (timeJoined !== undefined && found.timeJoined !== timeJoined) {
    differences.push(`${field}.timeJoinedInMSSinceEpoch`)
  }
  if ((found.email ?? undefined) !== email) differences.push(`${field}.email`)
  if ((found.phoneNumber ?? undefined) !== phoneNumber) differences.push(`${field}.phoneNumber`)
  return differences
}

const areSameTenants = (some: readonly string[], others: readonly string[]): boolean =>
  some.every((tenantId) => others.includes(tenantId)) &&
  others.every((tenantId) => some.includes(tenantId))
