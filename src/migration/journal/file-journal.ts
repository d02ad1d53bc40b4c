import { constants } from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { MigrationError } from '../run/migration-error.js'
import { HEADER } from './frame.js'
import type { Journal } from './journal.js'
import { checkFile, JOURNAL_FILE, makeFolder, syncFolder, unusable } from './journal-folder.js'
import { createWriter } from './journal-writer.js'
import { lockFolder, type ProcessLock } from './process-lock.js'
import { damaged, linesOf, NO_UNIT, readUnits, writtenSize } from './read-frames.js'

const LOCK = 'lock'

/**
 * A journal in a folder, which is made with the mode 0700, its files with 0600. Only one process of the
 * machine has it open at a time; a process that is gone, even by SIGKILL, has it no more. The folder
 * must be on a disk of this machine.
 *
 * `journal.ndjson` is only appended to. An `append` resolves when it is on disk; one that was cut off
 * by a crash is removed here. After an `append` that failed, all later ones of this process fail.
 *
 * @throws TypeError when `directory` is no path.
 * @throws MigrationError `journal_in_use`; `bad_journal` when the folder or the file is open to others,
 * is another user's, is damaged, of a newer format or no journal, or cannot be made, read or written.
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
    throw error instanceof MigrationError ? error : unusable(error)
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

/** A new file gets its name when it is whole, so none is ever found without its header. */
async function openFile(folder: string): Promise<FileHandle> {
  const path = join(folder, JOURNAL_FILE)
  const { O_RDWR, O_CREAT, O_TRUNC, O_NOFOLLOW = 0 } = constants
  const found = await open(path, O_RDWR | O_NOFOLLOW).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  if (found !== undefined) return found
  const unnamed = `${path}.new`
  const made = await open(unnamed, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
  try {
    await made.writeFile(HEADER)
    await made.sync()
    await rename(unnamed, path)
    await syncFolder(folder)
    return made
  } catch (error) {
    await made.close()
    throw error
  }
}

/** What a process wrote before it was killed may not be on disk yet, and is put there. */
async function recover(handle: FileHandle, lock: ProcessLock): Promise<Journal> {
  const size = await checkFile(handle)
  let last = NO_UNIT
  for await (const unit of readUnits(handle, await writtenSize(handle, size))) last = unit
  if (last.end < size) await handle.truncate(last.end)
  await handle.sync()
  return journalOn(handle, lock, createWriter(handle, last))
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
      let last = NO_UNIT
      for await (const unit of readUnits(handle, size)) {
        last = unit
        yield* linesOf(unit)
      }
      if (last.end < size) throw damaged(last.line + 1)
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
 * A journal that another process may have open and go on with: each `read` tells what it holds then.
 * Takes no lock, changes nothing, and refuses every `append`.
 *
 * @throws MigrationError `bad_journal` when there is none; so does `read`, when it is damaged or open
 * to others.
 */
export async function journalInUse(directory: string): Promise<Journal> {
  const { O_RDONLY, O_NOFOLLOW = 0, O_NONBLOCK = 0 } = constants
  const path = join(resolve(directory), JOURNAL_FILE)
  const handle = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch((error) => {
    throw unusable(error)
  })
  return {
    async *read() {
      try {
        const size = await checkFile(handle)
        // What is being written now is incomplete, and not told.
        for await (const unit of readUnits(handle, await writtenSize(handle, size))) {
          yield* linesOf(unit)
        }
      } catch (error) {
        throw error instanceof MigrationError ? error : unusable(error)
      }
    },
    append: () => Promise.reject(new Error('the journal is open for reading alone')),
    close: () => handle.close(),
  }
}
