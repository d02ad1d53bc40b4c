import { isObject } from '../../base/options.js'
import type { RecipeId } from '../core/import-user.js'
import { isBlank } from './stored-form.js'
import type { FindingCollector } from './user-finding.js'

export type JsonObject = Readonly<Record<string, unknown>>

/** A part of a record that is being read. */
export interface Reading {
  readonly object: JsonObject
  /** Path in the record; empty for the record itself. */
  readonly field: string
  /** The end of the core's generic messages. */
  readonly suffix: string
  readonly findings: FindingCollector
}

interface Values {
  readonly string: string
  readonly integer: number
  readonly boolean: boolean
  readonly object: JsonObject
  readonly 'array of string': readonly string[]
  readonly 'array of object': readonly JsonObject[]
}

type MemberType = keyof Values

/**
 * Predicates of the core's types, by their names in its messages. `null` has none of these types. They are
 * not zod schemas, because those took a quarter more time for a whole record.
 */
const IS_OF: { readonly [Type in MemberType]: (value: unknown) => value is Values[Type] } = {
  string: isNotBlank,
  integer: (value): value is number => typeof value === 'number' && Number.isFinite(value),
  boolean: (value) => typeof value === 'boolean',
  object: isObject,
  'array of string': (value) => isListOf(value, isNotBlank),
  'array of object': (value) => isListOf(value, isObject),
}

/** Checks holes too, which `every` would skip. */
function isListOf<Member>(
  value: unknown,
  isOfType: (member: unknown) => member is Member,
): value is Member[] {
  return Array.isArray(value) && value.findIndex((member) => !isOfType(member)) === -1
}

function isNotBlank(value: unknown): value is string {
  return typeof value === 'string' && !isBlank(value)
}

/** Reads an optional member. A member of another type is refused and counts as absent. */
export function optional<Type extends MemberType>(
  reading: Reading,
  name: string,
  type: Type,
): Values[Type] | undefined {
  if (isAbsent(reading, name)) return undefined
  const { object, field, suffix, findings } = reading
  const value = object[name]
  const place = memberOf(field, name)
  if (!IS_OF[type](value)) {
    findings.refuse('wrong_type', place, `${name} should be of type ${type}${suffix}`)
    return undefined
  }
  // The core stores only a hash of a plain-text password.
  const check = name === 'plainTextPassword' ? checkUnicode : checkText
  if (typeof value === 'string') check(value, place, findings)
  if (type === 'array of string' && Array.isArray(value)) {
    for (const [index, text] of value.entries()) check(text, `${place}[${index}]`, findings)
  }
  return value
}

export function required<Type extends MemberType>(
  reading: Reading,
  name: string,
  type: Type,
): Values[Type] | undefined {
  if (!isAbsent(reading, name)) return optional(reading, name, type)
  const { field, suffix, findings } = reading
  findings.refuse('required', memberOf(field, name), `${name} is required${suffix}`)
  return undefined
}

export const isAbsent = ({ object }: Reading, name: string): boolean =>
  !Object.hasOwn(object, name) || object[name] === undefined

/** Returns the reading of the part with another `suffix`. */
export const ending = ({ object, field, findings }: Reading, suffix: string): Reading => ({
  object,
  field,
  suffix,
  findings,
})

/** Returns the path of a member whose name is known. */
export const memberOf = (field: string, name: string): string =>
  field === '' ? name : `${field}.${name}`

/** Names to show. Any other name may contain account data, for example in an object whose keys are e-mail addresses. */
const SHOWN_NAME = /^[A-Za-z_$][\w$-]{0,63}$/

/** Returns the path of a member, with `…` in place of a name that may contain account data. */
export function fieldOf(parent: string, name: string): string {
  if (!SHOWN_NAME.test(name)) return `${parent}["…"]`
  return parent === '' ? name : `${parent}.${name}`
}

/** Refuses lone surrogates, because the core stores question marks for them, which makes different texts equal. */
export function checkUnicode(text: string, field: string, findings: FindingCollector): void {
  if (text.isWellFormed()) return
  const message = 'A lone surrogate is not a character: the core would store a question mark.'
  findings.refuse('not_unicode', field, message)
}

/** Also refuses NUL: Postgres cannot store it in text, and the row would stay `PROCESSING` forever. */
function checkText(text: string, field: string, findings: FindingCollector): void {
  checkUnicode(text, field, findings)
  if (!text.includes('\0')) return
  findings.refuse('nul', field, 'The database of the core cannot store NUL (U+0000).')
}

/**
 * The core's JSON parser accepts 255 levels (Gson 2.12 and later). A call adds two levels, so a deeper
 * record would make the whole call unreadable.
 */
export const MAX_LEVELS = 253

/** The members of a record are one level below the record itself. */
export const LEVEL_OF_MEMBERS = 2

/** The core's message, which it sends for the whole call and not for one record. */
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

/** Warns of each member that the core does not read. Refuses one so deep that the core's JSON parser would fail. */
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
