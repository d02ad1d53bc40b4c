import type { ImportLoginMethod, ImportUser } from '../core/import-user.js'
import { checkMetadata } from './check-metadata.js'
import { repeatedMethodsOf } from './login-keys.js'
import { coreTenantId, coreTenantIds, PUBLIC_TENANT, trimmed } from './normalise.js'
import { hashFormOf } from './password-hash.js'
import { assertPhonePlans, isStoredInE164 } from './phone-number.js'
import {
  type FindingCollector,
  fieldOf,
  openFindings,
  type UserError,
  type UserWarning,
} from './user-finding.js'
import { parseUser, partsOf } from './user-schema.js'

/** Existing names. A set is faster than a list. */
export type Names = ReadonlySet<string> | readonly string[]

/** The tenants, roles and features of the core. Omitted members are not checked. */
export interface UserContext {
  /** Ids of the app's tenants. `public` always exists. */
  readonly tenants?: Names | undefined
  /** Names of roles. */
  readonly roles?: Names | undefined
  /** Features of the licence, such as `account_linking`. */
  readonly features?: Names | undefined
}

/** The result of `validateUser`. */
export type UserValidation =
  /** `user` is the value itself, unchanged. The core normalises it. */
  | { readonly ok: true; readonly user: ImportUser; readonly warnings: readonly UserWarning[] }
  /** The core refuses the user. */
  | {
      readonly ok: false
      /** At most 1000 errors. */
      readonly errors: readonly UserError[]
      readonly warnings: readonly UserWarning[]
    }

/**
 * Validates a user. What the core refuses when it accepts a user for the bulk import is an error; values that the
 * core accepts but that fail later are warnings. `value` is a result of `JSON.parse`. Where `context` omits a member,
 * nothing is checked against it. A record that is refused by itself is not checked against `context`. Does not check whether the tenants of a
 * user share a database, or whether another user has the same external id. Never throws because of `value`.
 *
 * @throws TypeError if a member of `context` is neither a list nor a set. Error if the installed
 * google-libphonenumber has other numbering plans than the core.
 * @see SuperTokens core, `BulkImportUserUtils`
 *
 * @example
 * ```ts
 * import { validateUser } from 'express-service-auth/migration'
 *
 * const user = { externalUserId: 'ada', loginMethods: [{ recipeId: 'email' }] }
 * const result = validateUser(user, { tenants: ['public'] })
 * console.log(result.ok) // false
 * ```
 */
export function validateUser(value: unknown, context: UserContext = {}): UserValidation {
  assertPhonePlans()
  checkContext(context)
  const findings = openFindings()
  const { errors, warnings } = findings
  const user = parseUser(value, findings)
  if (user === undefined) return { ok: false, errors, warnings }
  for (const check of CHECKS) check(user, findings, context)
  return errors.length > 0 ? { ok: false, errors, warnings } : { ok: true, user, warnings }
}

/** @throws TypeError if a member is neither a list nor a set. */
function checkContext(context: UserContext): void {
  for (const name of ['tenants', 'roles', 'features'] as const) {
    const names = context[name]
    if (names === undefined || Array.isArray(names) || names instanceof Set) continue
    throw new TypeError(`validateUser: ${name} must be a list or a set of names`)
  }
}

type Check = (user: ImportUser, findings: FindingCollector, context: UserContext) => void

/** The checks of a record that its schema accepts. */
const CHECKS: readonly Check[] = [
  checkTenants,
  checkRoles,
  checkDevices,
  checkPrimaries,
  checkLogins,
  ({ userMetadata = {} }, findings) => checkMetadata(userMetadata, 'userMetadata', findings),
  warnOfUnknownMembers,
]

const has = (names: Names, name: string): boolean =>
  'has' in names ? names.has(name) : names.includes(name)

export type Feature = 'account_linking' | 'multi_tenancy' | 'mfa'

/** Whether a feature is known to be off. The feature `mfa` includes `account_linking`. */
function lacks({ features }: UserContext, feature: Feature): boolean {
  if (features === undefined || has(features, feature)) return false
  return feature !== 'account_linking' || !has(features, 'mfa')
}

function checkTenants(
  { loginMethods, userRoles = [] }: ImportUser,
  { refuse }: FindingCollector,
  context: UserContext,
): void {
  const { tenants } = context
  const withLogin = new Set(loginMethods.flatMap((method) => coreTenantIds(method.tenantIds)))
  const check = (tenantId: string, field: string): void => {
    // Only the exact name is free: the core stores `Public` as `public`, but requires multitenancy for that spelling.
    if (tenantId === PUBLIC_TENANT) return
    const stored = coreTenantId(tenantId)
    if (lacks(context, 'multi_tenancy')) {
      refuse(
        'feature_missing',
        field,
        'A tenant other than public needs the feature multi_tenancy.',
      )
    } else if (tenants !== undefined && stored !== PUBLIC_TENANT && !has(tenants, stored)) {
      refuse('tenant_missing', field, 'The core lacks this tenant.')
    }
  }
  for (const [index, { tenantIds = [] }] of loginMethods.entries()) {
    for (const [place, tenantId] of tenantIds.entries()) {
      check(tenantId, `loginMethods[${index}].tenantIds[${place}]`)
    }
  }
  for (const [index, { tenantIds }] of userRoles.entries()) {
    for (const [place, tenantId] of tenantIds.entries()) {
      const field = `userRoles[${index}].tenantIds[${place}]`
      check(tenantId, field)
      const stored = coreTenantId(tenantId)
      if (stored === PUBLIC_TENANT || withLogin.has(stored)) continue
      refuse('tenant_without_login', field, 'No login method of the user is in this tenant.')
    }
  }
}

function checkRoles(
  { userRoles = [] }: ImportUser,
  { refuse, warn }: FindingCollector,
  { roles }: UserContext,
): void {
  const pairs = new Set<string>()
  for (const [index, { role, tenantIds }] of userRoles.entries()) {
    const field = `userRoles[${index}]`
    const name = trimmed(role)
    if (roles !== undefined && !has(roles, name)) {
      refuse('role_missing', `${field}.role`, 'The core lacks this role.')
    }
    if (tenantIds.length === 0) warn('role_without_tenants', `${field}.tenantIds`, ROLE_LOST)
    for (const [place, tenantId] of tenantIds.entries()) {
      const pair = JSON.stringify([name, coreTenantId(tenantId)])
      if (pairs.has(pair)) refuse('duplicate', `${field}.tenantIds[${place}]`, ROLE_TWICE)
      pairs.add(pair)
    }
  }
}

const ROLE_LOST =
  'The core assigns a role in the tenants named with it: without one the role is lost.'
const ROLE_TWICE = 'The record has this role in this tenant twice: the import fails.'

function checkDevices(
  { totpDevices }: ImportUser,
  { refuse, warn }: FindingCollector,
  context: UserContext,
): void {
  if (totpDevices === undefined) return
  if (lacks(context, 'mfa')) {
    refuse('feature_missing', 'totpDevices', 'TOTP devices need the feature mfa.')
  }
  const names = new Set<string>()
  for (const [index, { deviceName }] of totpDevices.entries()) {
    const field = `totpDevices[${index}].deviceName`
    if (deviceName === undefined) warn('totp_name_missing', field, NAME_MISSING)
    else if (names.has(trimmed(deviceName))) refuse('duplicate', field, DEVICE_TWICE)
    else names.add(trimmed(deviceName))
  }
}

const NAME_MISSING = 'The core names no device by itself: the import of one without a name fails.'
const DEVICE_TWICE =
  'An earlier device of the record has the same name: the core would store only one of them.'

function checkPrimaries(
  { loginMethods }: ImportUser,
  { refuse, warn }: FindingCollector,
  context: UserContext,
): void {
  const withoutLinking = lacks(context, 'account_linking')
  const [first, ...others] = [...loginMethods.keys()].filter(
    (index) => loginMethods[index]?.isPrimary === true,
  )
  for (const index of others) {
    const message = 'An earlier login method is primary already.'
    refuse('two_primaries', `loginMethods[${index}].isPrimary`, message)
  }
  if (loginMethods.length > 1) {
    const message = 'Several login methods need the feature account_linking.'
    if (withoutLinking) refuse('feature_missing', 'loginMethods', message)
    if (first === undefined) warn('no_primary', 'loginMethods', NO_PRIMARY)
  } else if (first !== undefined && withoutLinking) {
    const message = 'A primary user needs account linking: without it the import fails.'
    warn('primary_without_linking', 'loginMethods[0].isPrimary', message)
  }
}

const NO_PRIMARY =
  'Without isPrimary on one of them, core 12 makes a user of each; 10.1 and 11.4 link them.'

function checkLogins(user: ImportUser, { warn }: FindingCollector): void {
  for (const [index, method] of user.loginMethods.entries()) {
    warnOfMethod(method, (code, name, message) =>
      warn(code, `loginMethods[${index}].${name}`, message),
    )
  }
  if (user.loginMethods.length < 2) return
  for (const index of repeatedMethodsOf(user)) {
    const message = 'An earlier method of this user has this login: the import fails.'
    warn('login_twice', `loginMethods[${index}]`, message)
  }
}

function warnOfMethod(
  { recipeId, phoneNumber, passwordHash, hashingAlgorithm }: ImportLoginMethod,
  warn: FindingCollector['warn'],
): void {
  if (recipeId === 'passwordless' && phoneNumber !== undefined && !isStoredInE164(phoneNumber)) {
    const message = 'Not a phone number with a country code: the core stores it unchanged.'
    warn('phone_not_e164', 'phoneNumber', message)
  }
  if (recipeId !== 'emailpassword' || passwordHash === undefined) return
  if (hashingAlgorithm === undefined) warn('hash_unchecked', 'passwordHash', UNCHECKED)
  else if (hashFormOf(hashingAlgorithm)?.isComplete(trimmed(passwordHash)) === false) {
    warn('hash_incomplete', 'passwordHash', INCOMPLETE)
  }
}

const UNCHECKED =
  'Without hashingAlgorithm the core does not check the hash, and uses it in place of the password.'
const INCOMPLETE =
  'Begins like a hash of its algorithm but is incomplete: no password will match it.'

function warnOfUnknownMembers(user: ImportUser, { warn }: FindingCollector): void {
  for (const { field, part, known } of partsOf(user)) {
    for (const name of Object.keys(part)) {
      if (known.includes(name)) continue
      const meant = known.find((member) => member.toLowerCase() === name.toLowerCase())
      const advice = meant === undefined ? '' : ` It reads ${meant}.`
      warn('unknown_member', fieldOf(field, name), `The core does not read this member.${advice}`)
    }
  }
}
