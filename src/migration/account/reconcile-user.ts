import { isObject } from '../../base/options.js'
import type {
  CallOptions,
  CoreClient,
  CoreLoginMethod,
  CoreTotpDevice,
  CoreUser,
} from '../core/core-client.js'
import type { ImportLoginMethod, ImportUser } from '../core/import-user.js'
import { coreTenantIds, lowerCased, trimmed } from '../record-validation/normalise.js'
import { corePhoneNumber } from '../record-validation/phone-number.js'
import { fieldOf } from '../record-validation/user-finding.js'
import { findTakenLogin } from './conflicting-account.js'

/** The result of looking up an identity. */
type Reconciliation =
  | {
      readonly state: 'found'
      readonly coreUserId: string
      /** The `id` that the core returns for the account; another identity's external id if the account is shared. */
      readonly accountId: string
      /** The result of `compareAccount`. */
      readonly differences: readonly string[]
    }
  | {
      readonly state: 'missing'
      /** The core's id of an account with a login of the record, maybe the missing account without its external id. */
      readonly heldBy?: string
    }

/**
 * Looks up one identity and compares its account with its record.
 *
 * @throws CoreError if a call of the core fails.
 */
export async function reconcileUser(
  core: CoreClient,
  identity: AskedIdentity,
  options: CallOptions = {},
): Promise<Reconciliation> {
  const account = await readAccount(core, identity, options)
  if (account === undefined) {
    const taken = await findTakenLogin(core, identity.user, options)
    return { state: 'missing', ...(taken !== undefined && { heldBy: taken.heldBy }) }
  }
  return {
    state: 'found',
    coreUserId: account.coreUserId,
    accountId: account.user.id,
    differences: compareAccount(identity.user, account),
  }
}

/**
 * Returns the paths of the record in which the account differs, without values. The path `loginMethods`
 * means that the account has a method that the record lacks. Roles, metadata and devices that only the
 * account has are not differences, because users sign in meanwhile. Passwords cannot be read back.
 */
export function compareAccount(user: ImportUser, account: Account): string[] {
  return [
    ...compareObjects(user.userMetadata ?? {}, account.metadata, 'userMetadata'),
    ...compareRoles(user, account),
    ...compareTotpDevices(user, account),
    ...compareLoginMethods(user.loginMethods, account.user.loginMethods),
  ]
}

function compareRoles({ userRoles = [] }: ImportUser, { roles }: Account): string[] {
  return userRoles.flatMap(({ role, tenantIds }, index) => {
    const name = trimmed(role)
    const hasRole = coreTenantIds(tenantIds).every((id) => roles.get(id)?.includes(name))
    return hasRole ? [] : [`userRoles[${index}]`]
  })
}

/** Defaults of the core for a device without these values. */
const DEFAULT_PERIOD_SECONDS = 30
const DEFAULT_SKEW = 1

function compareTotpDevices({ totpDevices = [] }: ImportUser, account: Account): string[] {
  const remaining = new Map(account.totpDevices.map((device) => [device.name, device]))
  return totpDevices.flatMap((device, index) => {
    const field = `totpDevices[${index}]`
    const name = trimmed(device.deviceName ?? '')
    const found = remaining.get(name)
    // The core stores only one of two devices with the same name.
    remaining.delete(name)
    if (found === undefined) return [field]
    const { period = DEFAULT_PERIOD_SECONDS, skew = DEFAULT_SKEW } = device
    const differences: string[] = []
    if (found.period !== Math.trunc(period)) differences.push(`${field}.period`)
    if (found.skew !== Math.trunc(skew)) differences.push(`${field}.skew`)
    return differences
  })
}

type Metadata = Readonly<Record<string, unknown>>

/** Returns the paths of the record's metadata that the account lacks. */
function compareObjects(wanted: Metadata, stored: Metadata, field: string): string[] {
  const differences: string[] = []
  for (const name of Object.keys(wanted)) {
    const value = wanted[name]
    // The core drops members that are `null`.
    if (value === null) continue
    const found = Object.hasOwn(stored, name) ? stored[name] : undefined
    if (value === found) continue
    if (isObject(value) && isObject(found)) {
      differences.push(...compareObjects(value, found, fieldOf(field, name)))
    } else if (!isSame(value, found)) differences.push(fieldOf(field, name))
  }
  return differences
}

/** Compares a list as a whole, because its elements have no names to match them by. */
function isSame(wanted: unknown, stored: unknown): boolean {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(stored) || stored.length !== wanted.length) return false
    return wanted.every((element, index) => isSame(element, stored[index]))
  }
  if (isObject(wanted)) return isObject(stored) && compareObjects(wanted, stored, '').length === 0
  return wanted === stored
}

/** The core's data of an account, as far as the record has values to compare it with. */
export interface Account {
  readonly coreUserId: string
  readonly user: CoreUser
  /** The roles of each tenant. */
  readonly roles: ReadonlyMap<string, readonly string[]>
  readonly metadata: Readonly<Record<string, unknown>>
  readonly totpDevices: readonly CoreTotpDevice[]
}

/** A user with its external id, under which the core stores roles, metadata and TOTP devices. */
interface AskedIdentity {
  readonly externalUserId: string
  readonly user: ImportUser
}

/**
 * Reads the account of an identity, one look-up after another. Returns `undefined` if the external id
 * has no account.
 *
 * @throws CoreError if a call of the core fails.
 */
async function readAccount(
  core: CoreClient,
  { externalUserId, user }: AskedIdentity,
  options: CallOptions = {},
): Promise<Account | undefined> {
  const coreUserId = await core.coreIdOf(externalUserId, options)
  if (coreUserId === undefined) return undefined
  const found = await core.user(coreUserId, options)
  if (found === undefined) return undefined
  const roles = new Map<string, readonly string[]>()
  for (const tenantId of roleTenantsOf(user)) {
    roles.set(tenantId, await core.rolesOf(tenantId, externalUserId, options))
  }
  const hasMetadata = Object.keys(user.userMetadata ?? {}).length > 0
  const hasDevices = (user.totpDevices ?? []).length > 0
  return {
    coreUserId,
    user: found,
    roles,
    metadata: hasMetadata ? await core.metadataOf(externalUserId, options) : {},
    totpDevices: hasDevices ? await core.totpDevicesOf(externalUserId, options) : [],
  }
}

const roleTenantsOf = ({ userRoles = [] }: ImportUser): ReadonlySet<string> =>
  new Set(userRoles.flatMap(({ tenantIds }) => coreTenantIds(tenantIds)))

/** Compares login methods in any order. A method that only the account has is a difference too. */
function compareLoginMethods(
  record: readonly ImportLoginMethod[],
  account: readonly CoreLoginMethod[],
): string[] {
  const remaining = [...account]
  const differences = record.flatMap((method, index) => {
    const field = `loginMethods[${index}]`
    const wanted = wantedOf(method)
    const place = findMethod(wanted, remaining)
    const [found] = place === undefined ? [] : remaining.splice(place, 1)
    return found === undefined ? [field] : differencesOf(wanted, found, field)
  })
  return remaining.length === 0 ? differences : [...differences, 'loginMethods']
}

/** Returns a method of a record in the form in which the core returns it. */
function wantedOf(method: ImportLoginMethod) {
  const { recipeId, email, timeJoinedInMSSinceEpoch: timeJoined } = method
  const isThirdParty = recipeId === 'thirdparty'
  const phoneNumber = recipeId === 'passwordless' ? method.phoneNumber : undefined
  return {
    recipeId,
    tenantIds: coreTenantIds(method.tenantIds),
    // The core returns a phone number without an e-mail address as verified, whatever the record has.
    verified: (phoneNumber !== undefined && email === undefined) || method.isVerified === true,
    // Without a time, the core uses the time of the import.
    timeJoined: timeJoined === undefined ? undefined : Math.trunc(timeJoined),
    email: email === undefined ? undefined : lowerCased(email),
    phoneNumber: phoneNumber === undefined ? undefined : corePhoneNumber(phoneNumber),
    thirdPartyId: isThirdParty ? method.thirdPartyId : undefined,
    thirdPartyUserId: isThirdParty ? method.thirdPartyUserId : undefined,
  }
}

type WantedMethod = ReturnType<typeof wantedOf>

/** Several methods may have the same login in different tenants. Prefers the method with the same tenants. */
function findMethod(wanted: WantedMethod, methods: readonly CoreLoginMethod[]): number | undefined {
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
