import type { ImportLoginMethod, ImportUser } from '../core/import-user.js'
import { metadataFindings } from './check-metadata.js'
import { recipeKeysOf } from './login-keys.js'
import {
  assertPhonePlans,
  coreTenantId,
  coreTenantIds,
  isStoredInE164,
  PUBLIC_TENANT,
  trimmed,
} from './normalise.js'
import { hashFaultOf } from './password-hash.js'
import { type Finding, finding, isError, type UserError, type UserWarning } from './user-finding.js'
import { valueFindings } from './user-schema.js'

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

/** The result of `validateUser`: at most 100 findings of a code, so that no code hides another. */
export type UserValidation =
  /** `user` is the value itself, unchanged. The core normalises it. */
  | { readonly ok: true; readonly user: ImportUser; readonly warnings: readonly UserWarning[] }
  /** The core refuses the user. */
  | {
      readonly ok: false
      readonly errors: readonly UserError[]
      readonly warnings: readonly UserWarning[]
    }

/**
 * Validates a user. What the core refuses when it accepts a user for the bulk import is an error; values that the
 * core accepts but that fail later are warnings. `value` is a result of `JSON.parse`. Where `context` omits a member,
 * nothing is checked against it. A record with a value that the core refuses is not checked further. Does not check whether the tenants of a
 * user share a database, or whether another user has the same external id. Never throws because of `value`.
 *
 * @throws Error if the installed google-libphonenumber has other numbering plans than the core.
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
  const findings = limited(findingsOf(value, context))
  const errors = findings.filter(isError)
  const warnings = findings.filter((found) => !isError(found))
  if (errors.length > 0) return { ok: false, errors, warnings }
  return { ok: true, user: value as ImportUser, warnings }
}

const MAX_OF_A_CODE = 100

function limited(findings: Iterable<Finding>): Finding[] {
  const counts = new Map<string, number>()
  return [...findings].filter(({ code }) => {
    const count = (counts.get(code) ?? 0) + 1
    counts.set(code, count)
    return count <= MAX_OF_A_CODE
  })
}

function* findingsOf(value: unknown, context: UserContext): Generator<Finding> {
  const ofValues = [...valueFindings(value)]
  yield* ofValues
  if (!ofValues.some(isError)) yield* userFindings(value as ImportUser, context)
}

/** Yields what is wrong with a user whose values the core accepts one by one. */
function* userFindings(user: ImportUser, context: UserContext): Generator<Finding> {
  const { loginMethods, userMetadata = {} } = user
  yield* roleFindings(user)
  yield* deviceFindings(user)
  for (const [index, method] of loginMethods.entries()) {
    yield* methodFindings(method, `loginMethods[${index}]`)
  }
  yield* linkFindings(user)
  yield* metadataFindings(userMetadata)
  for (const { kind, name, field, warning } of lackedBy(user, context)) {
    const text = `The core lacks the feature ${name}, which this needs.`
    if (warning !== undefined) yield finding(warning, field)
    else yield finding(`${kind}_missing`, field, kind === 'feature' ? text : undefined)
  }
}

function* roleFindings({ userRoles = [], loginMethods }: ImportUser): Generator<Finding> {
  const withLogin = new Set(loginMethods.flatMap((method) => coreTenantIds(method.tenantIds)))
  const assigned = new Set<string>()
  for (const [index, { role, tenantIds }] of userRoles.entries()) {
    const list = `userRoles[${index}].tenantIds`
    if (tenantIds.length === 0) yield finding('role_without_tenants', list)
    for (const [place, tenantId] of coreTenantIds(tenantIds).entries()) {
      const field = `${list}[${place}]`
      const pair = JSON.stringify([trimmed(role), tenantId])
      if (assigned.has(pair)) yield finding('duplicate', field)
      assigned.add(pair)
      if (tenantId !== PUBLIC_TENANT && !withLogin.has(tenantId)) {
        yield finding('tenant_without_login', field)
      }
    }
  }
}

function* deviceFindings({ totpDevices = [] }: ImportUser): Generator<Finding> {
  const names = new Set<string>()
  for (const [index, { deviceName }] of totpDevices.entries()) {
    const field = `totpDevices[${index}].deviceName`
    if (deviceName === undefined) yield finding('totp_name_missing', field)
    else if (names.has(trimmed(deviceName))) yield finding('duplicate', field)
    else names.add(trimmed(deviceName))
  }
}

function* methodFindings(method: ImportLoginMethod, field: string): Generator<Finding> {
  const { recipeId, email, phoneNumber, passwordHash, hashingAlgorithm } = method
  if (recipeId === 'passwordless') {
    if (email === undefined && phoneNumber === undefined) yield finding('no_login', field)
    if (phoneNumber !== undefined && !isStoredInE164(phoneNumber)) {
      yield finding('phone_not_e164', `${field}.phoneNumber`)
    }
  }
  if (recipeId !== 'emailpassword') return
  const hasHash = passwordHash !== undefined && hashingAlgorithm !== undefined
  if (!hasHash && method.plainTextPassword === undefined) yield finding('no_password', field)
  if (passwordHash === undefined) return
  const fault = hashFaultOf(passwordHash, hashingAlgorithm)
  if (fault !== undefined) yield finding(fault, `${field}.passwordHash`)
}

function* linkFindings({ loginMethods }: ImportUser): Generator<Finding> {
  const [first, ...others] = [...loginMethods.keys()].filter(
    (index) => loginMethods[index]?.isPrimary === true,
  )
  for (const index of others) yield finding('two_primaries', `loginMethods[${index}].isPrimary`)
  if (loginMethods.length > 1 && first === undefined) yield finding('no_primary', 'loginMethods')
  const seen = new Set<string>()
  for (const [index, method] of loginMethods.entries()) {
    const keys = recipeKeysOf({ loginMethods: [method] })
    if (keys.some((key) => seen.has(key))) yield finding('login_twice', `loginMethods[${index}]`)
    for (const key of keys) seen.add(key)
  }
}

/** What the core must have to import a user. */
interface Need {
  readonly kind: 'tenant' | 'role' | 'feature'
  /** A name as the core stores it, or a feature of its licence. */
  readonly name: string
  readonly field: string
  /** Given if the core accepts the user nevertheless, and fails later. */
  readonly warning?: 'primary_without_linking'
}

/** Yields what the user needs and the core is known to lack. */
export function* lackedBy(user: ImportUser, context: UserContext): Generator<Need> {
  for (const need of needsOf(user)) {
    const names = context[`${need.kind}s`]
    if (names !== undefined && !isAmong(names, need)) yield need
  }
}

function isAmong(names: Names, { kind, name }: Need): boolean {
  const has = (wanted: string) => ('has' in names ? names.has(wanted) : names.includes(wanted))
  if (has(name) || (kind === 'tenant' && name === PUBLIC_TENANT)) return true
  return kind === 'feature' && name === 'account_linking' && has('mfa')
}

function* needsOf({ loginMethods, userRoles = [], totpDevices }: ImportUser): Generator<Need> {
  const tenants = [...tenantsIn('loginMethods', loginMethods), ...tenantsIn('userRoles', userRoles)]
  for (const { tenantId, field } of tenants) {
    yield { kind: 'tenant', name: coreTenantId(tenantId), field }
  }
  for (const [index, { role }] of userRoles.entries()) {
    yield { kind: 'role', name: trimmed(role), field: `userRoles[${index}].role` }
  }
  const linking = { kind: 'feature', name: 'account_linking' } as const
  if (loginMethods.length > 1) yield { ...linking, field: 'loginMethods' }
  else if (loginMethods[0]?.isPrimary === true) {
    const field = 'loginMethods[0].isPrimary'
    yield { ...linking, field, warning: 'primary_without_linking' }
  }
  for (const { tenantId, field } of tenants) {
    // Only the exact name is free: the core stores `Public` as `public`, but requires multitenancy for that spelling.
    if (tenantId !== PUBLIC_TENANT) yield { kind: 'feature', name: 'multi_tenancy', field }
  }
  if (totpDevices !== undefined) yield { kind: 'feature', name: 'mfa', field: 'totpDevices' }
}

const tenantsIn = (list: string, parts: readonly { readonly tenantIds?: readonly string[] }[]) =>
  parts.flatMap(({ tenantIds = [] }, index) =>
    tenantIds.map((tenantId, place) => ({
      tenantId,
      field: `${list}[${index}].tenantIds[${place}]`,
    })),
  )
