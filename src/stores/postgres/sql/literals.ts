/**
 * What may stand in the text of a statement: names, digests and integers of ours. All else is bound.
 * Names of types and functions are qualified, because a handler can change `search_path`; a literal with
 * a backslash is an `E''`, because it can change `standard_conforming_strings`. Each function that the
 * server has to look up and evaluate costs a request more than reading a literal.
 */

const SCHEMA = /^[a-z_][a-z0-9_]{0,62}$/
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const BYTES = /^([0-9a-f]{2})+$/
const INTEGER = /^-?\d{1,20}$/

export const quotedSchema = (schema: string): string => `"${checked(schema, SCHEMA)}"`

export const uuidLiteral = (uuid: string): string => `'${checked(uuid, UUID)}'::pg_catalog.uuid`

/** Bytes that are given in hexadecimal. */
export const bytesLiteral = (bytes: string): string =>
  `E'\\\\x${checked(bytes, BYTES)}'::pg_catalog.bytea`

/** An integer of 64 bits, for a function that takes nothing else. */
export const lockLiteral = (lock: string): string => `'${checked(lock, INTEGER)}'`

/** The id of a transaction. */
export const fenceLiteral = (fence: string): string =>
  `'${checked(fence, INTEGER)}'::pg_catalog.xid8`

/** A text that is an integer. */
export const integerText = (integer: string): string => `'${checked(integer, INTEGER)}'`

/** A duration that a setting takes: whole ms, at least one, because zero would be none. */
export function settingLiteral(durationMs: number): string {
  return `'${Math.max(1, Math.ceil(finite(durationMs)))}ms'`
}

/** A duration from now, by the database's clock. */
export function momentIn(durationMs: number): string {
  const seconds = Math.ceil(Math.max(0, finite(durationMs))) / 1000
  return `pg_catalog.clock_timestamp() OPERATOR(pg_catalog.+) interval '${seconds.toFixed(3)} seconds'`
}

function finite(durationMs: number): number {
  if (Number.isFinite(durationMs)) return durationMs
  throw new TypeError('a duration must be a finite number of ms')
}

function checked(text: string, pattern: RegExp): string {
  if (pattern.test(text)) return text
  throw new TypeError(`a part of a statement must match ${pattern.source}`)
}
