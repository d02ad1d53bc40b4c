import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
// Node before 20.15 lacks `crc32`: a named import would end in a SyntaxError before `nodeFault` is read.
import zlib from 'node:zlib'
import { MigrationError, type MigrationErrorCode } from '../run/migration-error.js'
import { readLines } from './read-lines.js'
import {
  type ParsedLine,
  parseLine,
  parseRecord,
  type Source,
  type SourceRecord,
} from './source.js'

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
  function checkUnchanged(index: number, { text, line }: SourceRecord): void {
    const checksum = zlib.crc32(text)
    const isNew = digest === undefined && index === checksums.length
    if (isNew) checksums.push(checksum)
    if (checksums[index] !== checksum) throw sourceError(`${what} ${CHANGED}`, line)
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
        checkUnchanged(index, parsed.record)
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

const CHANGED = 'has changed since it was first read'

type CreateError = (message: string) => MigrationError

const recordReader = (records: () => AsyncIterable<unknown>, maxBytes: number): Read =>
  async function* (hash, signal) {
    let line = 0
    for await (const given of records()) {
      signal?.throwIfAborted()
      line += 1
      const parsed = parseRecord(given, line, maxBytes)
      if (parsed.type === 'record') hash.update(parsed.record.text).update('\n')
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
