import { constants } from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { MigrationError } from '../run/migration-error.js'
import type { Journal } from './journal.js'
import { checkFile, JOURNAL_FILE, makeFolder, openError, syncFolder } from './journal-folder.js'
import { damaged, encodeUnit, HEADER, NO_UNIT, parseUnit, type Unit } from './journal-format.js'
import { lockFolder, type ProcessLock } from './process-lock.js'
import { readUnits, writtenSize } from './read-journal.js'

const LOCK = 'lock'

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
 * users, belongs to another user, is damaged, has a newer format, is not a journal, or cannot be created,
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
    const lock = await lockFolder(join(folder, LOCK))
    if (lock === undefined) {
      throw new MigrationError('journal_in_use', 'another step has the journal open')
    }
    return await openLocked(folder, lock)
  } catch (error) {
    throw error instanceof MigrationError ? error : openError(error)
  }
}

async function openLocked(folder: string, lock: ProcessLock): Promise<Journal> {
  let handle: FileHandle | undefined
  try {
    handle = await openFile(folder)
    return await recover(handle, lock)
  } catch (error) {
    await handle?.close()
    await lock.free()
    throw error
  }
}

/** Renames a new file to its final name once it is complete, so the journal always has its header. */
async function openFile(folder: string): Promise<FileHandle> {
  const path = join(folder, JOURNAL_FILE)
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
    await syncFolder(folder)
    return created
  } catch (error) {
    await created.close()
    throw error
  }
}

/** Truncates an incomplete append, and syncs data that a killed process may not have synced. */
async function recover(handle: FileHandle, lock: ProcessLock): Promise<Journal> {
  const size = await checkFile(handle)
  let lastUnit = NO_UNIT
  for await (const unit of readUnits(handle, await writtenSize(handle, size))) lastUnit = unit
  if (lastUnit.end < size) await handle.truncate(lastUnit.end)
  await handle.sync()
  return journalOn(handle, lock, createWriter(handle, lastUnit))
}

function journalOn(
  handle: FileHandle,
  lock: ProcessLock,
  writer: ReturnType<typeof createWriter>,
): Journal {
  let closing: Promise<void> | undefined

  const mustBeOpen = (): void => {
    if (closing !== undefined) throw new Error('the journal is closed')
  }

  async function close(): Promise<void> {
    await writer.settled()
    try {
      await handle.close()
    } finally {
      await lock.free()
    }
  }

  return {
    async *read() {
      mustBeOpen()
      const size = writer.size()
      let lastUnit = NO_UNIT
      for await (const unit of readUnits(handle, size)) {
        lastUnit = unit
        yield* parseUnit(unit)
      }
      if (lastUnit.end < size) throw damaged(lastUnit.line + 1)
    },
    async append(lines) {
      mustBeOpen()
      await writer.append(lines)
    },
    close() {
      closing ??= close()
      return closing
    },
  }
}

/**
 * Opens a journal for reading while another process may append to it. Each `read` returns the current
 * lines. Takes no lock, changes nothing, and rejects every `append`.
 *
 * @throws MigrationError `bad_journal` if the journal cannot be opened. Its `read` throws this error if the journal is
 * damaged or accessible to other users.
 */
export async function readOnlyJournal(directory: string): Promise<Journal> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
  const path = join(resolve(directory), JOURNAL_FILE)
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((error) => {
    throw openError(error)
  })
  return {
    async *read() {
      try {
        const size = await checkFile(handle)
        // Skips an append that is still being written.
        for await (const unit of readUnits(handle, await writtenSize(handle, size))) {
          yield* parseUnit(unit)
        }
      } catch (error) {
        throw error instanceof MigrationError ? error : openError(error)
      }
    },
    append: () => Promise.reject(new Error('the journal is open for reading alone')),
    close: () => handle.close(),
  }
}

const LINE_BREAK = /[\r\n]/

/** Writes one append after another. */
function createWriter(handle: FileHandle, lastUnit: Pick<Unit, 'end' | 'check'>) {
  let { end, check } = lastUnit
  let failure: MigrationError | undefined
  let writing: Promise<void> = Promise.resolve()

  async function write(lines: readonly string[]): Promise<void> {
    if (failure !== undefined) throw failure
    if (lines.length === 0) return
    const unit = encodeUnit(check, lines)
    try {
      await handle.appendFile(unit.bytes)
      await handle.datasync()
    } catch (error) {
      failure = writeError(error)
      // After a failed sync it is unknown which bytes are on disk, so all bytes of this write are removed.
      await handle.truncate(end).catch(() => {})
      throw failure
    }
    end += unit.bytes.length
    check = unit.check
  }

  return {
    async append(lines: readonly string[]): Promise<void> {
      if (lines.some((line) => LINE_BREAK.test(line))) {
        throw new TypeError('a line of a journal must not hold a line break')
      }
      // The caller may change its list before the write begins.
      const copy = [...lines]
      const written = writing.then(() => write(copy))
      writing = written.catch(() => {})
      await written
    },
    /** Returns the number of bytes that are on disk. */
    size: () => end,
    /** Resolves once no write is in progress. */
    settled: () => writing,
  }
}

function writeError(error: unknown): MigrationError {
  const { code } = error as NodeJS.ErrnoException
  return new MigrationError(
    'bad_journal',
    `the journal cannot be written${code ? ` (${code})` : ''}`,
  )
}
