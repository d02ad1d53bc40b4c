import { isUtf8 } from 'node:buffer'
import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
// Node before 20.15 lacks `crc32`: a named import would end in a SyntaxError before `nodeFault` is read.
import zlib from 'node:zlib'
import { parseJson } from '../../base/json.js'
import { isObject } from '../../base/options.js'
import { MigrationError, type MigrationErrorCode } from '../run/migration-error.js'
import { type FileLine, readLines } from './read-lines.js'

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
  /** Length of the record as JSON in UTF-8: for a file, of the line as it is. */
  readonly bytes: number
}

interface OpenSourceOptions {
  /** Maximum size of one record. */
  readonly maxRecordBytes: number
  /** Code of the errors. Default `bad_source`. */
  readonly code?: Extract<MigrationErrorCode, 'bad_source' | 'bad_corrections'>
}

/**
 * A source that can be read several times, each time from its beginning. It keeps a checksum of each record, so
 * that no record is yielded that differs from what was yielded before.
 */
export interface OpenSource {
  /** For a file, its path. */
  readonly name: string
  /**
   * Reads the source. Throws a MigrationError at the first line that is not a record, if the source has no
   * record, or if it has changed since it was first read.
   */
  records(signal?: AbortSignal): AsyncIterable<SourceRecord>
  /** Returns the hexadecimal SHA-256 of the source. Throws before it has been read to its end. */
  digest(): string
}

/** Reads a source once. Passes all of its bytes to `hash`. */
type Read = (hash: Hash, signal: AbortSignal | undefined) => AsyncIterable<ParsedLine>

export function openSource(source: Source, options: OpenSourceOptions): OpenSource {
  const { code = 'bad_source', maxRecordBytes } = options
  const what = code === 'bad_source' ? 'the source' : 'the file of corrections'
  const name = 'file' in source ? source.file : source.name
  const sourceError = (message: string, line?: number): MigrationError =>
    new MigrationError(code, `${message} (${JSON.stringify(name)})`, line)
  const read =
    'file' in source
      ? fileReader(name, maxRecordBytes, (message) => sourceError(`${what} ${message}`))
      : recordReader(source.records, maxRecordBytes)
  const checksums: number[] = []
  let digest: string | undefined

  /** Only the digest is proof, but it is known at the end: until then a changed record would be used. */
  function checkUnchanged(index: number, { text, record }: ParsedRecord): void {
    const checksum = zlib.crc32(text)
    const isNew = digest === undefined && index === checksums.length
    if (isNew) checksums.push(checksum)
    if (checksums[index] !== checksum) throw sourceError(`${what} ${CHANGED}`, record.line)
  }

  return {
    name,
    async *records(signal) {
      const hash = createHash('sha256')
      let line = 0
      let index = 0
      for await (const parsed of read(hash, signal)) {
        line += 1
        if (parsed.type === 'fault') throw sourceError(parsed.message, line)
        if (parsed.type === 'blank') continue
        checkUnchanged(index, parsed)
        index += 1
        yield parsed.record
      }
      if (index === 0) throw sourceError(`${what} holds no record`)
      const digestNow = hash.digest('hex')
      digest ??= digestNow
      if (digestNow !== digest) throw sourceError(`${what} ${CHANGED}`)
    },
    digest() {
      if (digest === undefined) throw new Error('the source has not been read to its end')
      return digest
    },
  }
}

type ParsedRecord = Extract<ParsedLine, { type: 'record' }>

const CHANGED = 'has changed since it was first read'

type CreateError = (message: string) => MigrationError

const recordReader = (records: () => AsyncIterable<unknown>, maxBytes: number): Read =>
  async function* (hash, signal) {
    let line = 0
    for await (const given of records()) {
      signal?.throwIfAborted()
      line += 1
      const parsed = parseRecord(given, line, maxBytes)
      if (parsed.type === 'record') hash.update(parsed.text).update('\n')
      yield parsed
    }
  }

const fileReader = (path: string, maxBytes: number, errorOf: CreateError): Read =>
  async function* (hash, signal) {
    const handle = await openFile(path, errorOf)
    try {
      const status = await handle.stat()
      if (!status.isFile()) throw errorOf('is not a regular file: name a file of NDJSON')
      const onRead = (bytes: Buffer): void => void hash.update(bytes)
      for await (const line of readLines(handle, { maxLineBytes: maxBytes, onRead })) {
        signal?.throwIfAborted()
        yield parseLine(line, maxBytes)
      }
    } catch (error) {
      throw readingError(error, errorOf)
    } finally {
      await handle.close()
    }
  }

/** Uses O_NONBLOCK, because opening a FIFO would otherwise wait for a writer. */
const openFile = (path: string, errorOf: CreateError): Promise<FileHandle> =>
  open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(
    ({ code = 'unknown' }: NodeJS.ErrnoException) => {
      throw errorOf(
        code === 'ENOENT' ? 'does not exist: check its path' : `cannot be opened: ${code}`,
      )
    },
  )

/** Converts errors of the system, and returns any other error unchanged. */
function readingError(error: unknown, errorOf: CreateError): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  return syscall === undefined ? error : errorOf(`cannot be read: ${code}`)
}

/** A record, a blank line, or a message that describes the error without quoting the line. */
type ParsedLine =
  | { readonly type: 'record'; readonly record: SourceRecord; readonly text: string }
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
function parseLine({ number, bytes, ended }: FileLine, maxBytes: number): ParsedLine {
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
  return { type: 'record', text, record: { line: number, value, bytes: content.length } }
}

/** Converts a record of a function to JSON and back, because JSON is what will be sent. */
function parseRecord(given: unknown, line: number, maxBytes: number): ParsedLine {
  const text = writeJson(given)
  const value = text === undefined ? undefined : parseJson(text)
  if (text === undefined || !isObject(value)) return fault(NOT_AN_OBJECT)
  const bytes = Buffer.byteLength(text)
  if (bytes > maxBytes) return fault(`this record is longer than ${maxBytes} bytes`)
  return { type: 'record', text, record: { line, value, bytes } }
}

const fault = (message: string): ParsedLine => ({ type: 'fault', message })

function writeJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}
