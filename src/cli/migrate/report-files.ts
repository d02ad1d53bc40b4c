import { constants } from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { usageError } from '../frame/command-failure.js'

/** In the folder of the journal. */
export const REPORT_FILE = 'report.json'
export const NEEDS_PERSON_FILE = 'report.ndjson'
export const ACCOUNTS_FILE = 'accounts.ndjson'

const FOR_ITS_OWNER_ALONE = 0o600

/** A file that only its owner can read. It gets its name once it is complete and synced to disk. */
export interface FileAside {
  append(text: string): Promise<void>
  /** Replaces the file that had the name. */
  finish(): Promise<void>
  /** Leaves the file that had the name unchanged. */
  abandon(): Promise<void>
}

/** The number of characters that are buffered before a write. */
const GATHERED = 64 * 1024

/**
 * Opens a file in the journal's folder, to replace it.
 *
 * @throws CommandFailure (2); the functions of the file reject with it too.
 */
export async function writeAside(directory: string, name: string): Promise<FileAside> {
  const path = join(directory, name)
  const aside = `${path}.part`
  const told = <T>(work: Promise<T>): Promise<T> => work.catch((error) => cannotWrite(name, error))
  // Overwrites the partial file of a killed process, which is of no use.
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW = 0 } = constants
  const file = await told(
    open(aside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, FOR_ITS_OWNER_ALONE),
  )
  let gathered = ''
  const flush = async (): Promise<void> => {
    const text = gathered
    gathered = ''
    await told(file.writeFile(text))
  }
  return {
    async append(text) {
      gathered += text
      if (gathered.length >= GATHERED) await flush()
    },
    async finish() {
      await flush()
      await told(settle(file, { aside, path, directory }))
    },
    abandon: () => file.close(),
  }
}

interface Places {
  readonly aside: string
  readonly path: string
  readonly directory: string
}

async function settle(file: FileHandle, { aside, path, directory }: Places): Promise<void> {
  await file.sync()
  await file.close()
  await rename(aside, path)
  // Windows cannot open folders.
  if (process.platform === 'win32') return
  const folder = await open(directory)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function cannotWrite(name: string, error: unknown): never {
  const code = (error as NodeJS.ErrnoException).code
  throw usageError(
    'file',
    `${name} cannot be written${code ? ` (${code})` : ''}; the journal contains all ` +
      'completed work, and `status` writes the file again',
  )
}
