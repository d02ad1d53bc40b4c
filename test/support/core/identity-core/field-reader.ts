import { isBlank, isObject, isString, type JsonObject } from './input.js'

interface KindValues {
  string: string
  integer: number
  long: number
  boolean: boolean
  object: JsonObject
  'array of string': string[]
  'array of object': JsonObject[]
}

type Kind = keyof KindValues

const IS: { readonly [K in Kind]: (value: unknown) => boolean } = {
  string: isFullString,
  integer: (value) => typeof value === 'number',
  long: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  object: isObject,
  'array of string': (value) => Array.isArray(value) && value.every(isFullString),
  'array of object': (value) => Array.isArray(value) && value.every(isObject),
}

/** Reads the members of one object; adds faults to `errors`, in the core's words. */
export interface FieldReader {
  optional<K extends Kind>(name: string, kind: K, suffix?: string): KindValues[K] | undefined
  required<K extends Kind>(name: string, kind: K): KindValues[K] | undefined
}

/** `suffix` ends each text, and names the part of the user. */
export function fieldReader(object: JsonObject, suffix: string, errors: string[]): FieldReader {
  function optional<K extends Kind>(name: string, kind: K, end = suffix) {
    if (!Object.hasOwn(object, name)) return undefined
    const value = object[name]
    // An explicit null has a wrong type; it is not absent.
    if (IS[kind](value)) return toValue(value, kind) as KindValues[K]
    errors.push(`${name} should be of type ${kind === 'long' ? 'integer' : kind}${end}`)
    return undefined
  }
  return {
    optional,
    required(name, kind) {
      if (!Object.hasOwn(object, name)) errors.push(`${name} is required${suffix}`)
      return optional(name, kind)
    },
  }
}

/** The core accepts any number as an integer, drops its fraction and keeps the lowest bits. */
function toValue(value: unknown, kind: Kind): unknown {
  if (typeof value !== 'number') return value
  return Number(BigInt.asIntN(kind === 'long' ? 64 : 32, BigInt(Math.trunc(value))))
}

function isFullString(value: unknown): boolean {
  return isString(value) && !isBlank(value)
}
