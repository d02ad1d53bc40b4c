/** A source of records. It is read several times and must return the same records each time. */
export type Source =
  /** An NDJSON file in UTF-8, with one record per line. */
  | { readonly file: string }
  /** A function that returns the records. `name` identifies it in the journal and in messages. */
  | { readonly name: string; readonly records: () => AsyncIterable<unknown> }

/** A record that was read from a source. */
export interface SourceRecord {
  /** Counts from 1: the line of a file, including blank lines, or otherwise the position of the record. */
  readonly line: number
  /** An object, not an array. */
  readonly value: Readonly<Record<string, unknown>>
  /** The record as JSON on one line. For a file, the line as it is. */
  readonly text: string
  /** Length of `text` in UTF-8. */
  readonly bytes: number
}
