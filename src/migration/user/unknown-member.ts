import { fieldOf } from './field.js'
import type { Reading } from './member.js'

const OF_EVERY_METHOD = [
  'recipeId',
  'tenantIds',
  'isVerified',
  'isPrimary',
  'timeJoinedInMSSinceEpoch',
]
const OF_PASSWORDS = ['passwordHash', 'hashingAlgorithm', 'plainTextPassword']
const OF_THIRD_PARTIES = ['thirdPartyId', 'thirdPartyUserId']

/** What the core reads of each part of a record. */
const KNOWN = {
  user: new Set(['externalUserId', 'userMetadata', 'userRoles', 'totpDevices', 'loginMethods']),
  role: new Set(['role', 'tenantIds']),
  totpDevice: new Set(['secretKey', 'period', 'skew', 'deviceName']),
  emailpassword: new Set([...OF_EVERY_METHOD, 'email', ...OF_PASSWORDS]),
  thirdparty: new Set([...OF_EVERY_METHOD, 'email', ...OF_THIRD_PARTIES]),
  passwordless: new Set([...OF_EVERY_METHOD, 'email', 'phoneNumber']),
  /** Of a method that is of no recipe. */
  method: new Set([
    ...OF_EVERY_METHOD,
    'email',
    'phoneNumber',
    ...OF_PASSWORDS,
    ...OF_THIRD_PARTIES,
  ]),
} as const satisfies Record<string, ReadonlySet<string>>

/** Warns of each member that the core leaves unread. */
export function warnOfUnknown(reading: Reading, part: keyof typeof KNOWN): void {
  const known: ReadonlySet<string> = KNOWN[part]
  for (const name of Object.keys(reading.object)) {
    if (!known.has(name)) warnOf(name, known, reading)
  }
}

function warnOf(name: string, known: ReadonlySet<string>, { field, findings }: Reading): void {
  const meant = [...known].find((member) => member.toLowerCase() === name.toLowerCase())
  const advice = meant === undefined ? '' : ` It reads ${meant}.`
  const message = `The core does not read this member.${advice}`
  findings.warn('unknown_member', fieldOf(field, name), message)
}
