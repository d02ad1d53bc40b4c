import { coreInteger } from './core-number.js'
import { trimmed } from './core-trim.js'
import { isAbsent, optional, type Reading, required } from './read-field.js'
import { checkUnknown } from './unknown-fields.js'
import { lacks, type UserContext } from './validation-context.js'

const LONGEST = 256
const SUFFIX = ' for a totp device.'

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
    const deviceName = readDevice({ object, field, suffix: SUFFIX, findings })
    if (deviceName === undefined) continue
    const name = trimmed(deviceName)
    if (names.has(name)) findings.refuse('duplicate', `${field}.deviceName`, TWICE)
    names.add(name)
  }
}

const TWICE =
  'An earlier device of the record has the same name: the core would store only one of them.'

/** Returns the name of the device. */
function readDevice(reading: Reading): string | undefined {
  const { field, findings } = reading
  const secretKey = required(reading, 'secretKey', 'string')
  const period = optional(reading, 'period', 'integer')
  const skew = optional(reading, 'skew', 'integer')
  const deviceName = optional(reading, 'deviceName', 'string')
  if (secretKey !== undefined && secretKey.length > LONGEST) {
    const message = 'TOTP secretKey … is too long. Max length is 256.'
    findings.refuse('too_long', `${field}.secretKey`, message)
  }
  if (period !== undefined && coreInteger(period, 32) < 1) {
    findings.refuse('out_of_range', `${field}.period`, 'period should be > 0 for a totp device.')
  }
  if (skew !== undefined && coreInteger(skew, 32) < 0) {
    findings.refuse('out_of_range', `${field}.skew`, 'skew should be >= 0 for a totp device.')
  }
  checkName(deviceName, reading)
  checkUnknown(reading, 'totpDevice')
  return deviceName
}

function checkName(deviceName: string | undefined, reading: Reading): void {
  const { field, findings } = reading
  const place = `${field}.deviceName`
  if (deviceName !== undefined && deviceName.length > LONGEST) {
    const message = `TOTP deviceName ${deviceName} is too long. Max length is 256.`
    findings.refuse('too_long', place, message)
  }
  if (isAbsent(reading, 'deviceName')) {
    const message = 'The core names no device by itself: the import of one without a name fails.'
    findings.warn('totp_name_missing', place, message)
  }
}
