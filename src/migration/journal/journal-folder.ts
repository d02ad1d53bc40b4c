import { type FileHandle, mkdir, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { MigrationError } from '../run/migration-error.js'

/** The journal's file in its folder. */
export const JOURNAL_FILE = 'journal.ndjson'

/** What is looked at of a folder or a file. */
interface Ownership {
  readonly mode: number
  readonly uid: number
}

const OPEN_TO_OTHERS = 0o077

/**
 * Makes the folder, and those above it, with the mode 0700 and on disk. One that is there already is
 * refused when it is open to others: it may be one that others need, so its mode is not changed.
 *
 * @throws MigrationError `bad_journal`.
 */
export async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  const status = await stat(folder)
  checkOwnership('folder', status)
  if (first === undefined) return
  for (let made = folder; made.length >= first.length; made = dirname(made)) {
    await syncFolder(dirname(made))
  }
}

/** @throws MigrationError `bad_journal`, when it is another's or others can read or change it. */
function checkOwnership(what: 'folder' | 'file', { mode, uid }: Ownership): void {
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
 * The size of the journal's file in bytes.
 *
 * @throws MigrationError `bad_journal`, when it is no file, another's, or others can read or change it.
 */
export async function checkFile(handle: FileHandle): Promise<number> {
  const status = await handle.stat()
  if (!status.isFile())
    throw new MigrationError('bad_journal', `${JOURNAL_FILE} is not a regular file`)
  checkOwnership('file', status)
  return status.size
}

/** Puts a folder's names on disk; Windows does so by itself. */
export async function syncFolder(folder: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Only what the system says; anything else is a fault of the program. */
export function unusable(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === undefined) return error
  return new MigrationError('bad_journal', `the journal cannot be opened (${code})`)
}
