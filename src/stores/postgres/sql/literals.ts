import { SCHEMA_NAME } from '../schema-names.js'

/**
 * The text of a statement contains only names, digests and integers of this package; everything else is
 * bound. Names of types and functions are qualified, because a handler can change `search_path`. A
 * literal with a backslash is an `E''`, because a handler can change `standard_conforming_strings`. A
 * function that the server has to look up and evaluate costs a request more than a literal.
 */

const UUID = /^[0-9a-f]{32}$/
const BYTES = /^([0-9a-f]{2})+$/
const INTEGER = /^-?\d{1,20}$/

export const quotedSchema = (schema: string): string => `"${checked(schema, SCHEMA_NAME)}"`

export const uuidLiteral = (uuid: string): string => `'${checked(uuid, UUID)}'::pg_catalog.uuid`

/** A `bytea` literal from bytes in hexadecimal. */
export const bytesLiteral = (bytes: string): string =>
  `E'\\\\x${checked(bytes, BYTES)}'::pg_catalog.bytea`

/** A 64-bit integer, without a type: for a function that takes only `bigint`. */
export const lockLiteral = (lock: string): string => `'${checked(lock, INTEGER)}'`

export const integerText = (integer: string): string => `'${checked(integer, INTEGER)}'`

/** A duration for a setting: whole ms, at least 1, because 0 would mean no limit. */
export function settingLiteral(durationMs: number): string {
  return `'${Math.max(1, Math.ceil(finite(durationMs)))}ms'`
}

/** SQL for the time `durationMs` from now, by the database's clock. */
export const timeFromNow = (durationMs: number): string =>
  `pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) interval '${intervalText(durationMs)}'`

/** A duration in whole ms, as the text of an `interval`. */
export function intervalText(durationMs: number): string {
  const seconds = Math.ceil(Math.max(0, finite(durationMs))) / 1000
  return `${seconds.toFixed(3)} seconds`
}

function finite(durationMs: number): number {
  if (Number.isFinite(durationMs)) return durationMs
  throw new TypeError('a duration must be a finite number of ms')
}

function checked(text: string, pattern: RegExp): string {
  if (pattern.test(text)) return text
  throw new TypeError(`a part of a statement must match ${pattern.source}`)
}
