import { Refused } from '../../../../src/testing/core/mint.js'
import { fieldReader } from './field-reader.js'
import {
  type ImportedUser,
  type ImportRules,
  isLinkingEnabled,
  type LoginMethod,
  type ReadContext,
  type TotpDevice,
  type UserRole,
} from './imported-user.js'
import { isObject, type JsonObject, trim } from './input.js'
import { readLoginMethod, readTenantIds } from './read-login-method.js'

export type Reading =
  | { readonly user: ImportedUser }
  /** In the words and the order of the core. */
  | { readonly errors: readonly string[] }

const MAX_EXTERNAL_ID_LENGTH = 128

/**
 * Checks a user like the core. Unknown members are ignored.
 * @throws {Refused} if the core answers with 500
 */
export function readUser(value: unknown, context: ReadContext): Reading {
  if (!isObject(value)) {
    const text = JSON.stringify(value)
    throw new Refused(500, `java.lang.IllegalStateException: Not a JSON Object: ${text}`)
  }
  const errors: string[] = []
  const fields = fieldReader(value, '.', errors)
  const givenId = fields.optional('externalUserId', 'string')
  const userMetadata = fields.optional('userMetadata', 'object')
  const userRoles = fields
    .optional('userRoles', 'array of object')
    ?.flatMap((role) => readUserRole(role, context, errors) ?? [])
  const totpDevices = readTotpDevices(fields.optional('totpDevices', 'array of object'))
  const loginMethods = readLoginMethods(fields.required('loginMethods', 'array of object'))
  const externalUserId = readExternalId(givenId)
  compareTenants(userRoles ?? [], loginMethods, { rules: context.rules, errors })
  const primary = primaryMethod(loginMethods)
  if (errors.length > 0 || primary === undefined) return { errors }
  const id = primary.superTokensUserId
  return { user: { id, externalUserId, userMetadata, userRoles, totpDevices, loginMethods } }

  function readTotpDevices(devices: JsonObject[] | undefined) {
    if (devices === undefined || context.features.has('mfa')) {
      return devices?.flatMap((device) => readTotpDevice(device, errors) ?? [])
    }
    errors.push('MFA must be enabled to import totp devices.')
    return undefined
  }

  function readLoginMethods(methods: JsonObject[] | undefined): LoginMethod[] {
    if (methods === undefined) return []
    if (methods.length === 0) errors.push('At least one loginMethod is required.')
    if (methods.length > 1 && !isLinkingEnabled(context.features)) {
      errors.push('Account linking must be enabled to import multiple loginMethods.')
    }
    const primaries = methods.filter((method) => method['isPrimary'] === true)
    for (const _ of primaries.slice(1)) {
      errors.push('No two loginMethods can have isPrimary as true.')
    }
    return methods.flatMap((method) => readLoginMethod(method, context, errors) ?? [])
  }

  function readExternalId(id: string | undefined): string | undefined {
    if (id === undefined) return undefined
    if (id.length > MAX_EXTERNAL_ID_LENGTH) {
      errors.push(`externalUserId ${id} is too long. Max length is ${MAX_EXTERNAL_ID_LENGTH}.`)
    }
    if (context.externalIds.has(id)) {
      errors.push(`externalUserId ${id} is not unique. It is already used by another user.`)
    }
    context.externalIds.add(id)
    return trim(id)
  }
}

/**
 * Returns the method that is marked as primary; otherwise the oldest, or the first of equally old
 * ones.
 */
function primaryMethod(methods: readonly LoginMethod[]): LoginMethod | undefined {
  const [oldest] = methods.toSorted(
    (a, b) => a.timeJoinedInMSSinceEpoch - b.timeJoinedInMSSinceEpoch,
  )
  return methods.find((method) => method.isPrimary) ?? oldest
}

const DEFAULT_PERIOD = 30
const DEFAULT_SKEW = 1
const MAX_ROLE_LENGTH = 255
const LONGEST = 256

/** @throws {Refused} with an error of the core for a role without a name */
function readUserRole(
  object: JsonObject,
  context: ReadContext,
  errors: string[],
): UserRole | undefined {
  const suffix = ' for a user role.'
  const fields = fieldReader(object, suffix, errors)
  const given = fields.required('role', 'string')
  const givenTenants = fields.required('tenantIds', 'array of string')
  if (given === undefined) throw new Refused(500, NO_ROLE)
  if (given.length > MAX_ROLE_LENGTH) {
    errors.push(`role ${given} is too long. Max length is ${MAX_ROLE_LENGTH}.`)
  }
  const role = trim(given)
  if (!context.roles.has(role)) errors.push(`Role ${role} does not exist.`)
  // The core uses the default for tenants of a wrong type.
  const tenantIds = readTenantIds(givenTenants ?? ['public'], context, { suffix, errors })
  return { role, tenantIds }
}

const NO_ROLE =
  'java.lang.NullPointerException: Cannot invoke "String.length()" because "role" is null'

function readTotpDevice(object: JsonObject, errors: string[]): TotpDevice | undefined {
  const fields = fieldReader(object, ' for a totp device.', errors)
  const secretKey = fields.required('secretKey', 'string')
  const period = fields.optional('period', 'integer') ?? DEFAULT_PERIOD
  const skew = fields.optional('skew', 'integer') ?? DEFAULT_SKEW
  const deviceName = fields.optional('deviceName', 'string')
  if (secretKey !== undefined && secretKey.length > LONGEST) {
    errors.push(`TOTP secretKey ${secretKey} is too long. Max length is ${LONGEST}.`)
  }
  if (period < 1) errors.push('period should be > 0 for a totp device.')
  if (skew < 0) errors.push('skew should be >= 0 for a totp device.')
  if (deviceName !== undefined && deviceName.length > LONGEST) {
    errors.push(`TOTP deviceName ${deviceName} is too long. Max length is ${LONGEST}.`)
  }
  if (secretKey === undefined) return undefined
  return { secretKey, period, skew, deviceName: deviceName && trim(deviceName) }
}

/** The core's last checks: each role's tenants must be in the login methods, which must have tenants. */
function compareTenants(
  roles: readonly UserRole[],
  methods: readonly LoginMethod[],
  { rules, errors }: { readonly rules: ImportRules; readonly errors: string[] },
): void {
  for (const tenantId of roles.flatMap((role) => role.tenantIds)) {
    if (tenantId === 'public' || methods.some((method) => method.tenantIds.includes(tenantId))) {
      continue
    }
    errors.push(`TenantId ${tenantId} for a user role does not exist in loginMethods.`)
  }
  for (const method of methods) {
    if (method.tenantIds.length > 0) continue
    errors.push(`LoginMethod '${printed(method, rules)}' has no tenantId`)
  }
}

function printed(method: LoginMethod, { printsMethods }: ImportRules): string {
  if (printsMethods) return JSON.stringify(method)
  const hash = method.superTokensUserId.slice(0, 8)
  return `io.supertokens.pluginInterface.bulkimport.BulkImportUser$LoginMethod@${hash}`
}
