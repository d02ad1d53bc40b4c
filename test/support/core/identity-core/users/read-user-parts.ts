import type { JsonObject } from '../json-input.js'
import { Refused } from '../reply.js'
import { fieldReader } from './field-reader.js'
import type { ReadContext, TotpDevice, UserRole } from './imported-user.js'
import { trim } from './java-text.js'
import { readTenantIds } from './read-tenants.js'

const DEFAULT_PERIOD = 30
const DEFAULT_SKEW = 1
const MAX_ROLE_LENGTH = 255
const LONGEST = 256

/** @throws {Refused} with an error of the core for a role without a name */
export function readUserRole(
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

export function readTotpDevice(object: JsonObject, errors: string[]): TotpDevice | undefined {
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
