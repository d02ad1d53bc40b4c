import {
  checkUnicode,
  checkUnknown,
  fieldOf,
  isAbsent,
  type JsonObject,
  LEVEL_OF_MEMBERS,
  MAX_LEVELS,
  optional,
  type Reading,
  required,
  TOO_DEEP,
} from './read-field.js'
import { coreInteger, coreTenantId, trimmed } from './stored-form.js'
import type { FindingCollector } from './user-finding.js'
import { has, lacks, readTenantIds, type UserContext } from './validation-context.js'

const MAX_ROLE_LENGTH = 255
const ROLE_SUFFIX = ' for a user role.'

/** The parts of a role that are compared with the login methods. */
export interface ReadRole {
  readonly field: string
  readonly tenantIds: readonly string[]
}

export function readUserRoles(record: Reading, context: UserContext): ReadRole[] {
  const given = optional(record, 'userRoles', 'array of object') ?? []
  const pairs = new Set<string>()
  return given.map((object, index) => {
    const field = `userRoles[${index}]`
    return readRole(
      { object, field, suffix: ROLE_SUFFIX, findings: record.findings },
      context,
      pairs,
    )
  })
}

/** `pairs` has each pair of role and tenant of the earlier roles. Adds the pairs of this role. */
function readRole(reading: Reading, context: UserContext, pairs: Set<string>): ReadRole {
  const { field, findings } = reading
  const role = required(reading, 'role', 'string')
  const given = required(reading, 'tenantIds', 'array of string')
  if (role !== undefined) {
    checkRole(role, reading, context)
    checkRepeatedRole(role, given ?? [], reading, pairs)
  }
  const tenantIds = readTenantIds(given, reading, context)
  if (given?.length === 0) {
    findings.warn(
      'role_without_tenants',
      `${field}.tenantIds`,
      'The core assigns a role in the tenants named with it: without one the role is lost.',
    )
  }
  checkUnknown(reading, 'role')
  return { field, tenantIds }
}

function checkRepeatedRole(
  role: string,
  tenantIds: readonly string[],
  { field, findings }: Reading,
  pairs: Set<string>,
): void {
  for (const [index, tenantId] of tenantIds.entries()) {
    const pair = JSON.stringify([trimmed(role), coreTenantId(tenantId)])
    if (pairs.has(pair)) findings.refuse('duplicate', `${field}.tenantIds[${index}]`, ROLE_TWICE)
    pairs.add(pair)
  }
}

const ROLE_TWICE = 'The record has this role in this tenant twice: the import fails.'

function checkRole(role: string, { field, findings }: Reading, { roles }: UserContext): void {
  const place = `${field}.role`
  if (role.length > MAX_ROLE_LENGTH) {
    findings.refuse('too_long', place, `role ${role} is too long. Max length is 255.`)
  }
  const name = trimmed(role)
  if (roles !== undefined && !has(roles, name)) {
    findings.refuse('role_missing', place, `Role ${name} does not exist.`)
  }
}

const MAX_DEVICE_TEXT_LENGTH = 256
const DEVICE_SUFFIX = ' for a totp device.'

export function readTotpDevices(record: Reading, context: UserContext): void {
  const given = optional(record, 'totpDevices', 'array of object')
  if (given === undefined) return
  const { findings } = record
  if (lacks(context, 'mfa')) {
    const message = 'MFA must be enabled to import totp devices.'
    findings.refuse('feature_missing', 'totpDevices', message)
    return
  }
  const names = new Set<string>()
  for (const [index, object] of given.entries()) {
    const field = `totpDevices[${index}]`
    const deviceName = readDevice({ object, field, suffix: DEVICE_SUFFIX, findings })
    if (deviceName === undefined) continue
    const name = trimmed(deviceName)
    if (names.has(name)) findings.refuse('duplicate', `${field}.deviceName`, DEVICE_TWICE)
    names.add(name)
  }
}

const DEVICE_TWICE =
  'An earlier device of the record has the same name: the core would store only one of them.'

/** Returns the name of the device. */
function readDevice(reading: Reading): string | undefined {
  const { field, findings } = reading
  const secretKey = required(reading, 'secretKey', 'string')
  const period = optional(reading, 'period', 'integer')
  const skew = optional(reading, 'skew', 'integer')
  const deviceName = optional(reading, 'deviceName', 'string')
  if (secretKey !== undefined && secretKey.length > MAX_DEVICE_TEXT_LENGTH) {
    const message = 'TOTP secretKey … is too long. Max length is 256.'
    findings.refuse('too_long', `${field}.secretKey`, message)
  }
  if (period !== undefined && coreInteger(period, 32) < 1) {
    findings.refuse('out_of_range', `${field}.period`, 'period should be > 0 for a totp device.')
  }
  if (skew !== undefined && coreInteger(skew, 32) < 0) {
    findings.refuse('out_of_range', `${field}.skew`, 'skew should be >= 0 for a totp device.')
  }
  checkDeviceName(deviceName, reading)
  checkUnknown(reading, 'totpDevice')
  return deviceName
}

function checkDeviceName(deviceName: string | undefined, reading: Reading): void {
  const { field, findings } = reading
  const place = `${field}.deviceName`
  if (deviceName !== undefined && deviceName.length > MAX_DEVICE_TEXT_LENGTH) {
    const message = `TOTP deviceName ${deviceName} is too long. Max length is 256.`
    findings.refuse('too_long', place, message)
  }
  if (isAbsent(reading, 'deviceName')) {
    const message = 'The core names no device by itself: the import of one without a name fails.'
    findings.warn('totp_name_missing', place, message)
  }
}

/** Matches names of credentials by their end: `resetToken`, but not `tokenCount`. */
const CREDENTIAL = new RegExp(
  [
    '(?:pass(?:word|wd|phrase|code)|pwd|secret|token|credential)s?$',
    '(?:api|private|secret|access|signing|encryption)[-_ ]?keys?$',
    '(?:recovery|backup)[-_ ]?codes?$',
    '(?:pass(?:word|wd|phrase)?|pwd)[-_ ]?(?:hash|digest|salt|plain)$',
    '(?:totp|otp|mfa)[-_ ]?(?:seed|key)$',
    '^(?:pin|otp|salt|seed|bcrypt|argon2|scrypt)$',
  ].join('|'),
  'i',
)

/**
 * Warns of members at any depth that are named like credentials, because applications read metadata, and
 * of numbers that may have lost digits during parsing. Refuses values that are nested too deeply, and lone
 * surrogates. NUL is allowed here, because JSON escapes it.
 */
export function checkMetadata(metadata: JsonObject, findings: FindingCollector): void {
  if (
    checkMetadataPart({ value: metadata, field: 'userMetadata', level: LEVEL_OF_MEMBERS }, findings)
  )
    return
  findings.refuse('too_deep', 'userMetadata', TOO_DEEP)
}

interface MetadataPart {
  readonly value: object
  readonly field: string
  readonly level: number
}

/** Returns `false` if it stopped at the maximum depth. */
function checkMetadataPart(
  { value, field, level }: MetadataPart,
  findings: FindingCollector,
): boolean {
  if (level > MAX_LEVELS) return false
  const isList = Array.isArray(value)
  for (const name of Object.keys(value)) {
    const member: unknown = (value as JsonObject)[name]
    const place = isList ? `${field}[${name}]` : fieldOf(field, name)
    if (!isList) checkUnicode(name, place, findings)
    if (typeof member === 'string') checkUnicode(member, place, findings)
    if (!isList && mayBeCredential(member) && CREDENTIAL.test(name)) {
      findings.warn('credential_in_metadata', place, CREDENTIAL_IN_METADATA)
    }
    if (typeof member === 'number' && !isExact(member)) {
      findings.warn('inexact_number', place, INEXACT_NUMBER)
    }
    if (typeof member !== 'object' || member === null) continue
    if (!checkMetadataPart({ value: member, field: place, level: level + 1 }, findings))
      return false
  }
  return true
}

const CREDENTIAL_IN_METADATA = 'Named like a credential: metadata is no place for one.'

const INEXACT_NUMBER =
  'Above 9007199254740991 JavaScript rounds an integer when it reads one: write the number as a text.'

/** `JSON.parse` rounds integers that are not safe. A fraction keeps all digits that a double has. */
const isExact = (number: number): boolean =>
  Number.isFinite(number) && (!Number.isInteger(number) || Number.isSafeInteger(number))

/** Excludes booleans, because `hasPassword: true` contains no password. */
const mayBeCredential = (value: unknown): boolean =>
  value !== null && value !== '' && typeof value !== 'boolean'
