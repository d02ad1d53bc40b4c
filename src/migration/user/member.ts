import { z } from 'zod'
import { isRecord } from '../../base/options.js'
import { isBlank } from './core-text.js'
import type { Findings } from './findings.js'

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

const text = z.string().refine((value) => !isBlank(value))
const object = z.custom<JsonObject>(isRecord)

/** The core's types, by the names that its texts give them. `null` is of none of them. */
const TYPES = {
  string: text,
  integer: z.number(),
  boolean: z.boolean(),
  object,
  'array of string': z.array(text),
  'array of object': z.array(object),
}

type MemberType = keyof typeof TYPES
type Value<Type extends MemberType> = z.output<(typeof TYPES)[Type]>

/** A member that may be absent. One of another type counts as absent, and is found. */
export function optional<Type extends MemberType>(
  reading: Reading,
  name: string,
  type: Type,
): Value<Type> | undefined {
  if (isAbsent(reading, name)) return undefined
  const { object, field, suffix, findings } = reading
  const read = TYPES[type].safeParse(object[name])
  if (read.success) return read.data as Value<Type>
  findings.refuse('wrong_type', memberOf(field, name), `${name} should be of type ${type}${suffix}`)
  return undefined
}

/** A member that must be there. */
export function required<Type extends MemberType>(
  reading: Reading,
  name: string,
  type: Type,
): Value<Type> | undefined {
  if (!isAbsent(reading, name)) return optional(reading, name, type)
  const { field, suffix, findings } = reading
  findings.refuse('required', memberOf(field, name), `${name} is required${suffix}`)
  return undefined
}

export const isAbsent = ({ object }: Reading, name: string): boolean =>
  !Object.hasOwn(object, name) || object[name] === undefined

/** The same part, while members are read whose texts end in another way. */
export const ending = (reading: Reading, suffix: string): Reading => ({ ...reading, suffix })

/** A member's path, where the name is one of ours. */
export const memberOf = (field: string, name: string): string =>
  field === '' ? name : `${field}.${name}`
