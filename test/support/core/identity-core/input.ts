import { isObject } from '../../../../src/base/options.js'
import { Refused } from '../../../../src/testing/core/mint.js'

export type JsonObject = Record<string, unknown>

export const badInput = (text: string): Refused => new Refused(400, text)

const CHECKS = {
  string: (value: unknown): value is string => typeof value === 'string',
  boolean: (value: unknown): value is boolean => typeof value === 'boolean',
  object: isObject,
  list: (value: unknown): value is unknown[] => Array.isArray(value),
}

interface Values {
  readonly string: string
  readonly boolean: boolean
  readonly object: JsonObject
  readonly list: unknown[]
}

/** @throws {Refused} if the member is missing or of another type */
export function field<Kind extends keyof Values>(
  body: JsonObject,
  name: string,
  kind: Kind,
): Values[Kind] {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  if (CHECKS[kind](value)) return value as Values[Kind]
  throw badInput(`Field name '${name}' is invalid in JSON input`)
}

/** Like `field`, but returns `undefined` if the member is missing. */
export function optionalField<Kind extends keyof Values>(
  body: JsonObject,
  name: string,
  kind: Kind,
): Values[Kind] | undefined {
  return Object.hasOwn(body, name) ? field(body, name, kind) : undefined
}

/** @throws {Refused} if the parameter is absent */
export function requiredText(query: URLSearchParams, name: string): string {
  const value = query.get(name)
  if (value === null) throw badInput(`Field name '${name}' is missing in GET request`)
  return value
}

/** Trims like Java, the language of the core: also control characters, but no other white space. */
export function trim(text: string): string {
  return text.replace(/^[\0-\x20]+|[\0-\x20]+$/g, '')
}

/** Returns a record as Java prints an object to JSON: without members that are null. */
export function withoutAbsent<Value extends object>(value: Value): Partial<Value> {
  const entries = Object.entries(value).filter(([, member]) => member != null)
  return Object.fromEntries(entries) as Partial<Value>
}
