import { isRecord } from '../../base/options.js'
import type { Findings } from './collect-findings.js'
import { isBlank } from './core-trim.js'
import { checkText, checkUnicode } from './stored-text.js'

export type JsonObject = Readonly<Record<string, unknown>>

/** A part of a record that is being read. */
export interface Reading {
  readonly object: JsonObject
  /** Where in the record; empty for the record itself. */
  readonly field: string
  /** Ends the core's generic texts. */
  readonly suffix: string
  readonly findings: Findings
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
 * The core's types, by the names that its texts give them. `null` is of none of them. Plain
 * predicates: a schema of zod for each took a quarter more time for a whole record.
 */
const IS_OF: { readonly [Type in MemberType]: (value: unknown) => value is Values[Type] } = {
  string: isText,
  integer: (value): value is number => typeof value === 'number' && Number.isFinite(value),
  boolean: (value) => typeof value === 'boolean',
  object: isRecord,
  'array of string': (value) => isListOf(value, isText),
  'array of object': (value) => isListOf(value, isRecord),
}

/** A hole is a member, too: `every` would leave it out. */
function isListOf<Member>(
  value: unknown,
  isOfType: (member: unknown) => member is Member,
): value is Member[] {
  return Array.isArray(value) && value.findIndex((member) => !isOfType(member)) === -1
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && !isBlank(value)
}

/** A member that may be absent. One of another type counts as absent, and is found. */
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
  // Only the hash of a password is stored.
  const check = name === 'plainTextPassword' ? checkUnicode : checkText
  if (typeof value === 'string') check(value, place, findings)
  if (type === 'array of string' && Array.isArray(value)) {
    for (const [index, text] of value.entries()) check(text, `${place}[${index}]`, findings)
  }
  return value
}

/** A member that must be there. */
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

/** The same part, while members are read whose texts end in another way. */
export const ending = ({ object, field, findings }: Reading, suffix: string): Reading => ({
  object,
  field,
  suffix,
  findings,
})

/** A member's path, where the name is one of ours. */
export const memberOf = (field: string, name: string): string =>
  field === '' ? name : `${field}.${name}`
