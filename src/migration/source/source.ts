import { isUtf8 } from 'node:buffer'
import { parseJson } from '../../base/json.js'
import { isObject } from '../../base/options.js'
import type { FileLine } from './read-lines.js'

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

/** A record, a blank line, or a message that describes the error without quoting the line. */
export type ParsedLine =
  | { readonly type: 'record'; readonly record: SourceRecord }
  | { readonly type: 'blank' }
  | { readonly type: 'fault'; readonly message: string }

const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])
const CARRIAGE_RETURN = 0x0d
const BLANK = /^[ \t\r]*$/
const ARRAY = /^[ \t]*\[/

const ENDS_IN_RECORD = 'the file ends in the middle of this record'
const NOT_JSON = 'this is not JSON: each line must be one whole record'
const AN_ARRAY = 'here is an array: NDJSON has one record a line, without brackets around them'
const NOT_AN_OBJECT = 'this is not a JSON object'

/** Parses a line of NDJSON, which may end with LF or CR LF. */
export function parseLine({ number, bytes, ended }: FileLine, maxBytes: number): ParsedLine {
  const content = bytes.at(-1) === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes
  if (content.length > maxBytes) return fault(`this line is longer than ${maxBytes} bytes`)
  if (number === 1 && content.indexOf(BYTE_ORDER_MARK) === 0) {
    return fault('the file begins with a byte order mark, and must be UTF-8 without one')
  }
  if (!isUtf8(content)) return fault(ended ? 'this line is not UTF-8' : ENDS_IN_RECORD)
  const text = content.toString()
  if (BLANK.test(text)) return { type: 'blank' }
  const value = parseJson(text)
  if (ARRAY.test(text)) return fault(AN_ARRAY)
  if (value === undefined) return fault(ended ? NOT_JSON : ENDS_IN_RECORD)
  if (!isObject(value)) return fault(NOT_AN_OBJECT)
  return { type: 'record', record: { line: number, value, text, bytes: content.length } }
}

/** Converts a record of a function to JSON and back, because JSON is what will be sent. */
export function parseRecord(given: unknown, line: number, maxBytes: number): ParsedLine {
  const text = writeJson(given)
  const value = text === undefined ? undefined : parseJson(text)
  if (text === undefined || !isObject(value)) return fault(NOT_AN_OBJECT)
  const bytes = Buffer.byteLength(text)
  if (bytes > maxBytes) return fault(`this record is longer than ${maxBytes} bytes`)
  return { type: 'record', record: { line, value, text, bytes } }
}

const fault = (message: string): ParsedLine => ({ type: 'fault', message })

function writeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
