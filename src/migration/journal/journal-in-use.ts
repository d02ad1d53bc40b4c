import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { MigrationError } from '../run/migration-error.js'
import type { Journal } from './journal.js'
import { checkFile, JOURNAL_FILE, unusable } from './journal-folder.js'
import { linesOf, readUnits, writtenSize } from './read-frames.js'

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
