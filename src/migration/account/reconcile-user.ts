import { isObject } from '../../base/options.js'
import type {
  CallOptions,
  CoreClient,
  CoreLoginMethod,
  CoreTotpDevice,
  CoreUser,
} from '../core/core-client.js'
import type { ImportLoginMethod, ImportUser } from '../core/import-user.js'
import { holderOf, recipeKeysOf } from '../record-validation/login-keys.js'
import {
  corePhoneNumber,
  coreTenantIds,
  lowerCased,
  trimmed,
} from '../record-validation/normalise.js'
import { fieldOf } from '../record-validation/user-finding.js'
import { type FoundAccount, findAccount, findTakenLogin, type Identity } from './find-account.js'

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
  identity: Identity,
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
    ...compareValues(user.userMetadata ?? {}, account.metadata, 'userMetadata'),
    ...compareRoles(user, account),
    ...compareTotpDevices(user, account),
    ...compareLoginMethods(user.loginMethods, account.user),
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
    const isSame = {
      period: found.period === Math.trunc(period),
      skew: found.skew === Math.trunc(skew),
    }
    return pathsOf(isSame, field)
  })
}

/** Returns the paths of the wanted value that the stored one lacks. */
function compareValues(wanted: unknown, stored: unknown, field: string): string[] {
  if (isObject(wanted) && isObject(stored)) {
    // The core drops members that are `null`.
    const names = Object.keys(wanted).filter((name) => wanted[name] !== null)
    return names.flatMap((name) => {
      const found = Object.hasOwn(stored, name) ? stored[name] : undefined
      return compareValues(wanted[name], found, fieldOf(field, name))
    })
  }
  return isSame(wanted, stored) ? [] : [field]
}

/** Compares a list as a whole, because its elements have no names to match them by. */
const isSame = (wanted: unknown, stored: unknown): boolean =>
  Array.isArray(wanted) && Array.isArray(stored)
    ? wanted.length === stored.length &&
      wanted.every((element, index) => compareValues(element, stored[index], '').length === 0)
    : wanted === stored

/** The core's data of an account, as far as the record has values to compare it with. */
export interface Account extends FoundAccount {
  /** The roles of each tenant. */
  readonly roles: ReadonlyMap<string, readonly string[]>
  readonly metadata: Readonly<Record<string, unknown>>
  readonly totpDevices: readonly CoreTotpDevice[]
}

/**
 * Reads the account of an identity, one look-up after another. Returns `undefined` if the external id
 * has no account.
 *
 * @throws CoreError if a call of the core fails.
 */
async function readAccount(
  core: CoreClient,
  { externalUserId, user }: Identity,
  options: CallOptions = {},
): Promise<Account | undefined> {
  const found = await findAccount(core, externalUserId, options)
  if (found === undefined) return undefined
  const { userMetadata = {}, userRoles = [], totpDevices = [] } = user
  const roles = new Map<string, readonly string[]>()
  for (const tenantId of new Set(userRoles.flatMap((role) => coreTenantIds(role.tenantIds)))) {
    roles.set(tenantId, await core.rolesOf(tenantId, externalUserId, options))
  }
  const hasMetadata = Object.keys(userMetadata).length > 0
  return {
    ...found,
    roles,
    metadata: hasMetadata ? await core.metadataOf(externalUserId, options) : {},
    totpDevices: totpDevices.length > 0 ? await core.totpDevicesOf(externalUserId, options) : [],
  }
}

/** Compares login methods in any order. A method that only the account has is a difference too. */
function compareLoginMethods(
  record: readonly ImportLoginMethod[],
  { isPrimaryUser, loginMethods }: CoreUser,
): string[] {
  const remaining = loginMethods.map((method) => ({
    method,
    keys: recipeKeysOf(holderOf({ isPrimaryUser, loginMethods: [method] })),
  }))
  const differences = record.flatMap((method, index) => {
    const field = `loginMethods[${index}]`
    const keys = new Set(recipeKeysOf({ loginMethods: [method] }))
    const place = remaining.findIndex((each) => each.keys.some((key) => keys.has(key)))
    const [found] = place < 0 ? [] : remaining.splice(place, 1)
    return found === undefined ? [field] : compareMethod(method, found.method, field)
  })
  return remaining.length === 0 ? differences : [...differences, 'loginMethods']
}

function compareMethod(method: ImportLoginMethod, found: CoreLoginMethod, field: string): string[] {
  const { recipeId, email, timeJoinedInMSSinceEpoch: timeJoined } = method
  const phoneNumber = recipeId === 'passwordless' ? method.phoneNumber : undefined
  const isSame = {
    tenantIds: areSameTenants(coreTenantIds(method.tenantIds), found.tenantIds),
    // Only a missing verification is a difference, because signing in with an e-mailed code verifies the address.
    isVerified: found.verified || method.isVerified !== true,
    // Without a time, the core uses the time of the import.
    timeJoinedInMSSinceEpoch:
      timeJoined === undefined || found.timeJoined === Math.trunc(timeJoined),
    email: found.email === (email === undefined ? undefined : lowerCased(email)),
    phoneNumber:
      found.phoneNumber === (phoneNumber === undefined ? undefined : corePhoneNumber(phoneNumber)),
  }
  return pathsOf(isSame, field)
}

/** Returns the paths of the members that are not the same. */
const pathsOf = (isSame: Readonly<Record<string, boolean>>, field: string): string[] =>
  Object.keys(isSame)
    .filter((name) => !isSame[name])
    .map((name) => `${field}.${name}`)

const areSameTenants = (some: readonly string[], others: readonly string[]): boolean =>
  some.every((tenantId) => others.includes(tenantId)) &&
  others.every((tenantId) => some.includes(tenantId))
