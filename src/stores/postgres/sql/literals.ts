/**
 * The text of a statement contains only names, digests, integers and durations of this package; everything else is
 * bound. Names of functions and operators are qualified, because a handler can change `search_path`. Literals have
 * no types of their own, because the server would look up each for every request: a column, a parameter of a
 * function, or the other side of an operator gives them one. One with a backslash is an `E''`, because a handler can
 * change `standard_conforming_strings`.
 */

export const DEFAULT_SCHEMA = 'service_auth'

/** A name that needs no escaping between double quotes. */
export const SCHEMA_NAME: RegExp = /^[a-z_][a-z0-9_]{0,62}$/

const UUID = /^[0-9a-f]{32}$/
const BYTES = /^([0-9a-f]{2})+$/
const INTEGER = /^-?\d{1,20}$/

export const quotedSchema = (schema: string): string => `"${checked(schema, SCHEMA_NAME)}"`

export const uuidLiteral = (uuid: string): string => `'${checked(uuid, UUID)}'`

/** A `bytea` literal from bytes in hexadecimal. */
export const bytesLiteral = (bytes: string): string => `E'\\\\x${checked(bytes, BYTES)}'`

export const integerLiteral = (integer: string): string => `'${checked(integer, INTEGER)}'`

/** A duration for a setting: whole ms, at least 1, because 0 would mean no limit. */
export function settingLiteral(durationMs: number): string {
  return `'${Math.max(1, Math.ceil(finite(durationMs)))}ms'`
}

/** SQL for the time an interval from now, by the database's clock. */
export const timeAfter = (interval: string): string =>
  `pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) ${interval}`

export const intervalLiteral = (durationMs: number): string => `'${intervalText(durationMs)}'`

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
