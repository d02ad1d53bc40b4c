import type { Row } from '../runner.js'
import { readValue } from './pg-values.js'

/** A result of `raw()`: its rows are lists of bytes, which no parser of the user has changed. */
export interface RawResult extends ArrayLike<ArrayLike<Uint8Array | null>> {
  readonly columns?: readonly { readonly name: string; readonly type: number }[] | null
}

export type NameTransform = ((name: string) => string) | undefined

/**
 * Returns the rows with the column names of the statement. The user's transform, such as
 * `postgres.camel`, changed these names; this restores the names that occur in the text.
 */
export function rowsOf(result: RawResult, text: string, transform: NameTransform): Row[] {
  const columns = result.columns ?? []
  const names = namesOf(text, transform)
  return Array.from(result, (bytes) => {
    const row: Row = {}
    columns.forEach(({ name, type }, index) => {
      const value = bytes[index] ?? null
      row[names.get(name) ?? name] = value && readValue(type, Buffer.from(value).toString())
    })
    return row
  })
}

function namesOf(text: string, transform: NameTransform): Map<string, string> {
  const names = new Map<string, string>()
  if (transform === undefined) return names
  for (const [name] of text.matchAll(/[a-z_][a-z0-9_]*/g)) names.set(transform(name), name)
  return names
}
