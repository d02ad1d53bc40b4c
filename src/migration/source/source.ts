/** Where records come from. Is read several times, and must give the same each time. */
export type Source =
  /** NDJSON in UTF-8, a record a line. */
  | { readonly file: string }
  /** `name` stands for it in the journal and in messages. */
  | { readonly name: string; readonly records: () => AsyncIterable<unknown> }

/** A record as it was read. */
export interface SourceRecord {
  /** From 1; of a file the line, blank lines counted, else the place in the order. */
  readonly line: number
  /** An object, not an array. */
  readonly value: Readonly<Record<string, unknown>>
  /** The record as JSON on one line: of a file as it stands there. */
  readonly text: string
  /** Of `text` in UTF-8. */
  readonly bytes: number
}
