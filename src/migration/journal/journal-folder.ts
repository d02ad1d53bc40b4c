import { type FileHandle, mkdir, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { MigrationError } from '../run/migration-error.js'

export const JOURNAL_FILE = 'journal.ndjson'

interface Ownership {
  readonly mode: number
  readonly uid: number
}

const OPEN_TO_OTHERS = 0o077

/**
 * Creates the folder and its parents with mode 0700, and syncs them to disk. Throws for an existing folder that
 * others can access: its mode is not changed, because others may need it.
 *
 * @throws MigrationError `bad_journal`.
 */
export async function makeFolder(folder: string): Promise<void> {
  const firstCreated = await mkdir(folder, { recursive: true, mode: 0o700 })
  const status = await stat(folder)
  checkOwnership('folder', status)
  if (firstCreated === undefined) return
  for (let each = folder; each.length >= firstCreated.length; each = dirname(each)) {
    await syncFolder(dirname(each))
  }
}

/** @throws MigrationError `bad_journal` if the folder or file belongs to another user or is accessible to others. */
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
 * Returns the size of the journal file in bytes.
 *
 * @throws MigrationError `bad_journal` if it is not a file, belongs to another user or is accessible to others.
 */
export async function checkFile(handle: FileHandle): Promise<number> {
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

/** Converts errors of the system. Any other error is a bug and is returned unchanged. */
export function openError(error: unknown): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === undefined) return error
  const isFile = code === 'EEXIST' || code === 'ENOTDIR'
  const message = isFile
    ? 'the journal is a folder, and its path leads to a file: name another one'
    : `the journal cannot be opened (${code})`
  return new MigrationError('bad_journal', message)
}
