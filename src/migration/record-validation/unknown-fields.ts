import type { RecipeId } from '../core/import-user.js'
import type { Reading } from './read-field.js'
import { fieldOf } from './read-field.js'

/**
 * The core's JSON parser accepts 255 levels (Gson 2.12 and later). A call adds two levels, so a deeper
 * record would make the whole call unreadable.
 */
export const MAX_LEVELS = 253

/** The record is level 1. */
export const LEVEL_OF_MEMBERS = 2

/** The core's answer to the whole call. */
export const TOO_DEEP = 'Invalid Json Input'

/** Whether a value at this level of its record is nested too deeply. */
function isTooDeep(value: unknown, level: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (level > MAX_LEVELS) return true
  if (Array.isArray(value)) return value.some((element) => isTooDeep(element, level + 1))
  const object = value as Record<string, unknown>
  for (const name of Object.keys(object)) {
    if (isTooDeep(object[name], level + 1)) return true
  }
  return false
}

const OF_EVERY_METHOD = [
  'recipeId',
  'tenantIds',
  'isVerified',
  'isPrimary',
  'timeJoinedInMSSinceEpoch',
]
const OF_PASSWORDS = ['passwordHash', 'hashingAlgorithm', 'plainTextPassword']
const OF_THIRD_PARTIES = ['thirdPartyId', 'thirdPartyUserId']

/** The level of the members of a role, device or login method, each of which is an object in a list. */
const LEVEL_OF_INNER_MEMBERS = LEVEL_OF_MEMBERS + 2

type Part = 'user' | 'role' | 'totpDevice' | RecipeId | 'method'

/** The members that the core reads of each part of a record. */
const KNOWN: Readonly<Record<Part, ReadonlySet<string>>> = {
  user: new Set(['externalUserId', 'userMetadata', 'userRoles', 'totpDevices', 'loginMethods']),
  role: new Set(['role', 'tenantIds']),
  totpDevice: new Set(['secretKey', 'period', 'skew', 'deviceName']),
  emailpassword: new Set([...OF_EVERY_METHOD, 'email', ...OF_PASSWORDS]),
  thirdparty: new Set([...OF_EVERY_METHOD, 'email', ...OF_THIRD_PARTIES]),
  passwordless: new Set([...OF_EVERY_METHOD, 'email', 'phoneNumber']),
  /** A method of an unknown recipe. */
  method: new Set([
    ...OF_EVERY_METHOD,
    'email',
    'phoneNumber',
    ...OF_PASSWORDS,
    ...OF_THIRD_PARTIES,
  ]),
}

/** Warns of each member that the core does not read, and refuses members that are nested too deeply to skip. */
export function checkUnknown(reading: Reading, part: Part): void {
  const known = KNOWN[part]
  for (const name of Object.keys(reading.object)) {
    if (known.has(name)) continue
    warnOf(name, known, reading)
    const level = reading.field === '' ? LEVEL_OF_MEMBERS : LEVEL_OF_INNER_MEMBERS
    if (!isTooDeep(reading.object[name], level)) continue
    reading.findings.refuse('too_deep', fieldOf(reading.field, name), TOO_DEEP)
  }
}

function warnOf(name: string, known: ReadonlySet<string>, { field, findings }: Reading): void {
  const meant = [...known].find((member) => member.toLowerCase() === name.toLowerCase())
  const advice = meant === undefined ? '' : ` It reads ${meant}.`
  const message = `The core does not read this member.${advice}`
  findings.warn('unknown_member', fieldOf(field, name), message)
}
