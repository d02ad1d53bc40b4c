import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { MigrationError, type MigrationErrorCode } from '../run/migration-error.js'
import { readLines } from './read-lines.js'
import {
  type ParsedLine,
  parseLine,
  parseRecord,
  type Source,
  type SourceRecord,
} from './source.js'

export interface OpenSourceOptions {
  /** Maximum size of one record. */
  readonly maxRecordBytes: number
  /** Code of the errors. Default `bad_source`. */
  readonly code?: Extract<MigrationErrorCode, 'bad_source' | 'bad_corrections'>
}

/** A source that can be read several times, each time from its beginning. */
export interface OpenSource {
  /** For a file, its path. */
  readonly name: string
  pass(options?: { readonly signal?: AbortSignal }): SourcePass
}

/**
 * One pass over a source, which can be iterated once. Throws a MigrationError at the first line that is
 * not a record, if the source has no record, or if it has changed since an earlier pass.
 */
export interface SourcePass extends AsyncIterable<SourceRecord> {
  /** Returns the hexadecimal SHA-256 of the source. Throws before the end of the pass. */
  digest(): string
}

/** The state of one pass. */
interface Reading {
  readonly hash: Hash
  readonly signal: AbortSignal | undefined
}

interface Reader {
  readonly name: string
  read(reading: Reading): AsyncIterable<ParsedLine>
}

/** @throws TypeError if `source` has neither form of a source. */
export function openSource(source: Source, options: OpenSourceOptions): OpenSource {
  const { code = 'bad_source', maxRecordBytes } = options
  const what = code === 'bad_source' ? 'the source' : 'the file of corrections'
  const refuse = (message: string, line?: number): MigrationError =>
    new MigrationError(code, `${message} (${JSON.stringify(reader.name)})`, line)
  const reader = readerOf(source, maxRecordBytes, (message) => refuse(`${what} ${message}`))
  let digestBefore: string | undefined

  async function* readRecords(reading: Reading): AsyncGenerator<SourceRecord, string> {
    let line = 0
    let records = 0
    for await (const parsed of reader.read(reading)) {
      line += 1
      if (parsed.type === 'fault') throw refuse(parsed.message, line)
      if (parsed.type === 'blank') continue
      records += 1
      yield parsed.record
    }
    if (records === 0) throw refuse(`${what} holds no record`)
    const digest = reading.hash.digest('hex')
    digestBefore ??= digest
    if (digest !== digestBefore) throw refuse(`${what} ${CHANGED}`)
    return digest
  }

  return {
    name: reader.name,
    pass({ signal } = {}) {
      const hash = createHash('sha256')
      let digest: string | undefined
      async function* records(): AsyncGenerator<SourceRecord> {
        digest = yield* readRecords({ hash, signal })
      }
      const iterator = records()
      return {
        [Symbol.asyncIterator]: () => iterator,
        digest() {
          if (digest === undefined) throw new Error('the source has not been read to its end')
          return digest
        },
      }
    },
  }
}

const CHANGED = 'has changed since it was first read'

type Refusal = (message: string) => MigrationError

function readerOf(source: Source, maxBytes: number, refuse: Refusal): Reader {
  const { file, name, records } = source as { file?: unknown; name?: unknown; records?: unknown }
  if (typeof file === 'string' && file !== '') return fileReader(file, maxBytes, refuse)
  if (typeof name === 'string' && name !== '' && typeof records === 'function') {
    return recordReader(name, records as () => AsyncIterable<unknown>, maxBytes)
  }
  throw new TypeError('a source must have a file, or a name and a function records')
}

function recordReader(
  name: string,
  records: () => AsyncIterable<unknown>,
  maxBytes: number,
): Reader {
  return {
    name,
    async *read({ hash, signal }) {
      let line = 0
      for await (const given of records()) {
        signal?.throwIfAborted()
        line += 1
        const parsed = parseRecord(given, line, maxBytes)
        if (parsed.type === 'record') hash.update(parsed.record.text).update('\n')
        yield parsed
      }
    },
  }
}

function fileReader(name: string, maxBytes: number, refuse: Refusal): Reader {
  let versionBefore: string | undefined

  const checkVersion = async (handle: FileHandle): Promise<void> => {
    const version = await versionOf(handle)
    if (version === undefined) throw refuse('is not a regular file')
    versionBefore ??= version
    if (version !== versionBefore) throw refuse(CHANGED)
  }

  return {
    name,
    async *read({ hash, signal }) {
      const handle = await openFile(name, refuse)
      try {
        await checkVersion(handle)
        const seen = (bytes: Buffer): void => void hash.update(bytes)
        for await (const line of readLines(handle, maxBytes, seen)) {
          signal?.throwIfAborted()
          yield parseLine(line, maxBytes)
        }
        await checkVersion(handle)
      } catch (error) {
        throw readingError(error, refuse)
      } finally {
        await handle.close()
      }
    },
  }
}

/** Uses O_NONBLOCK, because opening a FIFO would otherwise wait for a writer. */
const openFile = (path: string, refuse: Refusal): Promise<FileHandle> =>
  open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(
    ({ code = 'unknown' }: NodeJS.ErrnoException) => {
      throw refuse(`cannot be opened: ${code}`)
    },
  )

/** Converts errors of the system, and returns any other error unchanged. */
function readingError(error: unknown, refuse: Refusal): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  return syscall === undefined ? error : refuse(`cannot be read: ${code}`)
}

/** Identifies the state of a file without reading it; `undefined` for a folder or device. */
async function versionOf(handle: FileHandle): Promise<string | undefined> {
  const status = await handle.stat({ bigint: true })
  if (!status.isFile()) return undefined
  return [status.dev, status.ino, status.size, status.mtimeNs].join(' ')
}
