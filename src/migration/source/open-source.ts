import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { MigrationError, type MigrationErrorCode } from '../run/migration-error.js'
import { type ParsedLine, parseLine, parseRecord } from './parse-line.js'
import { readLines } from './read-lines.js'
import type { Source, SourceRecord } from './source.js'

export interface OpenSourceOptions {
  /** Of the largest record. */
  readonly maxRecordBytes: number
  /** Of what is thrown. Default `bad_source`. */
  readonly code?: Extract<MigrationErrorCode, 'bad_source' | 'bad_corrections'>
}

/** A source that can be read again and again, each time from its beginning. */
export interface OpenSource {
  /** Of the file its path. */
  readonly name: string
  pass(options?: { readonly signal?: AbortSignal }): SourcePass
}

/**
 * One reading of a source, once. Throws a MigrationError at the first line that is no record, where
 * there is none, and where the source is no longer what an earlier pass has read.
 */
export interface SourcePass extends AsyncIterable<SourceRecord> {
  /** Hexadecimal SHA-256 of all that was read; throws before the pass has come to its end. */
  digest(): string
}

/** What one pass does. */
interface Reading {
  readonly hash: Hash
  readonly signal: AbortSignal | undefined
}

/** How a source is read, and how it is refused. */
interface Reader {
  readonly name: string
  read(reading: Reading): AsyncIterable<ParsedLine>
}

/** @throws TypeError when it is neither form of a source. */
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

/** Without O_NONBLOCK, to open a FIFO would wait for whoever writes into it. */
const openFile = (path: string, refuse: Refusal): Promise<FileHandle> =>
  open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(
    ({ code = 'unknown' }: NodeJS.ErrnoException) => {
      throw refuse(`cannot be opened: ${code}`)
    },
  )

/** The system's own errors; any other is passed on. */
function readingError(error: unknown, refuse: Refusal): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException
  return syscall === undefined ? error : refuse(`cannot be read: ${code}`)
}

/** What tells one state of a file from another without reading it; undefined of a folder or device. */
async function versionOf(handle: FileHandle): Promise<string | undefined> {
  const status = await handle.stat({ bigint: true })
  if (!status.isFile()) return undefined
  return [status.dev, status.ino, status.size, status.mtimeNs].join(' ')
}
