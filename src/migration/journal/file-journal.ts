import { createHash } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { type FileHandle, mkdir, open, rename, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { MigrationError } from '../run/migration-error.js'
import { type FileLine, readLines } from '../source/read-lines.js'
import { lockFolder, type ProcessLock } from './process-lock.js'

/** The write-ahead log of a run. It contains neither secrets nor account data. */
export interface Journal {
  /** Yields all lines in the order of their appends. */
  read(): AsyncIterable<string>
  /** Appends all lines or none. Resolves once they survive a crash of the machine. */
  append(lines: readonly string[]): Promise<void>
  /** Closes the journal, so that another run can open it. */
  close(): Promise<void>
}

export const JOURNAL_FILE = 'journal.ndjson'

/**
 * Opens a journal in a folder. The folder is created with mode 0700, its files with mode 0600. Only one
 * process of the machine can have the journal open at a time; the lock ends with its process, even after
 * SIGKILL. The folder must be on a local disk.
 *
 * `journal.ndjson` is append-only. An `append` resolves once its lines are on disk. Opening removes an
 * append that a crash left incomplete. After a failed `append`, all later appends of this process fail.
 *
 * @throws TypeError if `directory` is not a non-empty string.
 * @throws MigrationError `journal_in_use`; `bad_journal` if the folder or the file is accessible to other
 * users, belongs to another user, is damaged, has another format, is not a journal, or cannot be created,
 * read or written.
 *
 * @example
 * ```ts
 * import { fileJournal } from 'express-service-auth/migration'
 *
 * const journal = await fileJournal('journal')
 * await journal.append(['one line'])
 * for await (const line of journal.read()) console.log(line) // one line
 * await journal.close()
 * ```
 */
export async function fileJournal(directory: string): Promise<Journal> {
  if (typeof directory !== 'string' || directory === '') {
    throw new TypeError('fileJournal: the directory must be a non-empty string')
  }
  const folder = resolve(directory)
  try {
    await makeFolder(folder)
    const lock = await lockFolder(join(folder, 'lock'))
    if (lock === undefined) {
      throw new MigrationError('journal_in_use', 'another step has the journal open')
    }
    return await openLocked(folder, lock)
  } catch (error) {
    throw openError(error)
  }
}

/** Truncates an incomplete append, and syncs data that a killed process may not have synced. */
async function openLocked(folder: string, lock: ProcessLock): Promise<Journal> {
  let handle: FileHandle | undefined
  try {
    handle = await openFile(join(folder, JOURNAL_FILE))
    const size = await checkFile(handle)
    let last: Position = AFTER_HEADER
    for await (const append of readAppends(handle, size)) last = append
    if (last.end < size) await handle.truncate(last.end)
    await handle.sync()
    return journalOn(handle, last, lock)
  } catch (error) {
    await handle?.close()
    await lock.free()
    throw error
  }
}

/** Renames a new file to its final name once it is complete, so the journal always has its header. */
async function openFile(path: string): Promise<FileHandle> {
  const { O_RDWR, O_APPEND, O_CREAT, O_TRUNC, O_NOFOLLOW = 0 } = constants
  const flags = O_RDWR | O_APPEND | O_NOFOLLOW
  const found = await open(path, flags).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (found !== undefined) return found
  const newPath = `${path}.new`
  const created = await open(newPath, flags | O_CREAT | O_TRUNC, 0o600)
  try {
    await created.writeFile(HEADER)
    await created.sync()
    await rename(newPath, path)
    await syncFolder(dirname(path))
    return created
  } catch (error) {
    await created.close()
    throw error
  }
}

/** Writes one append after another, from the position after the last one. */
function journalOn(handle: FileHandle, last: Position, lock: ProcessLock): Journal {
  let { end, check } = last
  let failure: MigrationError | undefined
  let writing: Promise<void> = Promise.resolve()
  let closing: Promise<void> | undefined

  async function write(lines: string): Promise<void> {
    if (failure !== undefined) throw failure
    const append = encode(check, lines)
    try {
      await handle.appendFile(append.bytes)
      await handle.datasync()
    } catch (error) {
      const { code = 'an unknown error' } = error as NodeJS.ErrnoException
      failure = new MigrationError('bad_journal', `the journal cannot be written (${code})`)
      // After a failed sync it is unknown which bytes are on disk, so all bytes of this write are removed.
      await handle.truncate(end).catch(() => {})
      throw failure
    }
    end += append.bytes.length
    check = append.check
  }

  async function close(): Promise<void> {
    await writing
    try {
      await handle.close()
    } finally {
      await lock.free()
    }
  }

  const mustBeOpen = (): void => {
    if (closing !== undefined) throw new Error('the journal is closed')
  }

  return {
    async *read() {
      mustBeOpen()
      const size = end
      let seen: Position = AFTER_HEADER
      for await (const append of readAppends(handle, size)) {
        seen = append
        yield* append.lines
      }
      if (seen.end < size) throw damaged(seen)
    },
    async append(lines) {
      mustBeOpen()
      if (lines.length === 0) return
      // Encoded now: the caller may change its list before the write begins.
      const array = JSON.stringify(lines)
      const written = writing.then(() => write(array))
      writing = written.catch(() => {})
      await written
    },
    close() {
      closing ??= close()
      return closing
    },
  }
}

const OPEN_TO_OTHERS = 0o077

/**
 * Creates the folder and its parents with mode 0700, and syncs them to disk. Throws for an existing folder that
 * others can access: its mode is not changed, because others may need it.
 *
 * @throws MigrationError `bad_journal`.
 */
async function makeFolder(folder: string): Promise<void> {
  const firstCreated = await mkdir(folder, { recursive: true, mode: 0o700 })
  const status = await stat(folder)
  checkOwnership('folder', status)
  if (firstCreated === undefined) return
  for (let each = folder; each.length >= firstCreated.length; each = dirname(each)) {
    await syncFolder(dirname(each))
  }
}

/** @throws MigrationError `bad_journal` if the folder or file belongs to another user or is accessible to others. */
function checkOwnership(what: 'folder' | 'file', { mode, uid }: Stats): void {
  if (process.platform === 'win32') return
  if (uid !== process.getuid?.()) {
    throw new MigrationError('bad_journal', `the journal's ${what} belongs to another user`)
  }
  if ((mode & OPEN_TO_OTHERS) === 0) return
  const remedy = what === 'folder' ? 'chmod 700' : 'chmod 600'
  throw new MigrationError(
    'bad_journal',
    `others can read or change the journal's ${what}: ${remedy}`,
  )
}

/**
 * Returns the size of the journal file in bytes.
 *
 * @throws MigrationError `bad_journal` if it is not a file, belongs to another user or is accessible to others.
 */
async function checkFile(handle: FileHandle): Promise<number> {
  const status = await handle.stat()
  if (!status.isFile())
    throw new MigrationError('bad_journal', `${JOURNAL_FILE} is not a regular file`)
  checkOwnership('file', status)
  return status.size
}

/** Syncs the entries of a folder to disk. On Windows this is not needed. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Converts errors of the system. A `MigrationError` and a bug are returned unchanged. */
function openError(error: unknown): unknown {
  if (error instanceof MigrationError) return error
  const { code } = error as NodeJS.ErrnoException
  if (code === undefined) return error
  const isFile = code === 'EEXIST' || code === 'ENOTDIR'
  const message = isFile
    ? 'the journal is a folder, and its path leads to a file: name another one'
    : `the journal cannot be opened (${code})`
  return new MigrationError('bad_journal', message)
}

// The first line of the file is HEADER. Each further line is one `append`:
//
//   {"check":"…","lines":["…","…"]}
//
// `check` is a digest of the array and the previous `check`, so a line that is changed, missing, moved or
// repeated is detected. A last line without its line feed is an append that a crash left incomplete.

const VERSION = 3
const START = '{"journal":"express-service-auth/migration","version":'
const HEADER: string = `${START}${VERSION}}\n`
const CHECK_DIGITS = 32
const BEFORE_LINES = '{"check":"","lines":'.length + CHECK_DIGITS

/** The end of a line of the file. */
interface Position {
  /** Offset in the file. */
  readonly end: number
  /** What the next line's digest continues. */
  readonly check: string
  readonly lineNumber: number
}

const AFTER_HEADER: Position = {
  end: HEADER.length,
  check: checkOf('', HEADER),
  lineNumber: 1,
}

/** Returns the bytes of an `append`, a JSON array that follows the digest `previous`, and its own digest. */
function encode(
  previous: string,
  array: string | Buffer,
): { readonly bytes: Buffer; readonly check: string } {
  const check = checkOf(previous, array)
  const parts = [`{"check":"${check}","lines":`, array, '}\n']
  return { check, bytes: Buffer.concat(parts.map((part) => Buffer.from(part))) }
}

function checkOf(previous: string, bytes: string | Buffer): string {
  const digest = createHash('sha256').update(previous).update(bytes).digest('hex')
  return digest.slice(0, CHECK_DIGITS)
}

/** An `append`, and its position in the file. */
interface Append extends Position {
  readonly lines: readonly string[]
}

/** Returns `undefined` unless the line is exactly an `append` that follows `previous`. */
function decode(previous: Position, line: Buffer): Append | undefined {
  const array = line.subarray(BEFORE_LINES, -1)
  const { bytes, check } = encode(previous.check, array)
  if (!bytes.subarray(0, -1).equals(line)) return undefined
  return {
    end: previous.end + bytes.length,
    check,
    lineNumber: previous.lineNumber + 1,
    lines: JSON.parse(array.toString()),
  }
}

/**
 * Yields the appends in the first `size` bytes of a journal. Leaves out an incomplete last one.
 *
 * @throws MigrationError `bad_journal` with the damaged line.
 */
async function* readAppends(handle: FileHandle, size: number): AsyncGenerator<Append> {
  let position: Position | undefined
  for await (const line of readLines(handle, { size })) {
    if (position === undefined) {
      checkHeader(line)
      position = AFTER_HEADER
      continue
    }
    if (isIncomplete(position, line)) return
    const append = decode(position, line.bytes)
    if (append === undefined) throw damaged(position)
    yield append
    position = append
  }
  if (position === undefined) checkHeader()
}

/** A last line with another byte in the place of its line feed is damaged. */
const isIncomplete = (previous: Position, { bytes, ended }: FileLine): boolean =>
  !ended && decode(previous, bytes.subarray(0, -1)) === undefined

function checkHeader(line?: FileLine): void {
  const text = line?.bytes.toString('latin1') ?? ''
  if (line?.ended && `${text}\n` === HEADER) return
  const version = text.startsWith(START)
    ? Number.parseInt(text.slice(START.length), 10)
    : Number.NaN
  if (version > VERSION) {
    throw new MigrationError('bad_journal', 'the journal is of a newer version of this package', 1)
  }
  if (version < VERSION) {
    throw new MigrationError(
      'bad_journal',
      'the journal is of an earlier version of this package: finish its migration with that version',
      1,
    )
  }
  throw new MigrationError(
    'bad_journal',
    'this is not the journal of a migration, or it is damaged',
    1,
  )
}

/** The error for the line after a position. */
const damaged = ({ lineNumber }: Position): MigrationError =>
  new MigrationError('bad_journal', 'the journal is damaged', lineNumber + 1)
