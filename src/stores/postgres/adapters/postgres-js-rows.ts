import type { Row } from '../runner.js'
import { readValue } from './pg-values.js'

/** A result of `raw()`: rows are lists of bytes that no parser of the user's has seen. */
export interface RawResult extends ArrayLike<ArrayLike<Uint8Array | null>> {
  readonly columns?: readonly { readonly name: string; readonly type: number }[] | null
}

export type NameTransform = ((name: string) => string) | undefined

/**
 * The rows under the names that the statement gives them. The user's transform, such as
 * `postgres.camel`, has changed these; it is undone for the names that stand in the text.
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
