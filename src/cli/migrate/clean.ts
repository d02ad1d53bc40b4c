import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, unlink } from 'node:fs/promises'
import type { MigrationReport } from '../../migration/run/report.js'
import type { CommandResult } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { EXIT_CODES, NOT_CONFIRMED } from './reports.js'

/** A source or corrections file of a journal. */
export interface OriginFile {
  /** Absolute. */
  readonly path: string
  /** The SHA-256 of its bytes, in hexadecimal. */
  readonly digest: string
}

/**
 * Lists the source and the corrections, and deletes them if `isConfirmed` is set. If a file has another digest
 * than in the journal, none is deleted. The bytes are not overwritten first, because no program can know where
 * a file system has written them.
 *
 * @throws CommandFailure (2)
 */
export async function cleanAway(
  origins: readonly OriginFile[],
  { state }: MigrationReport,
  isConfirmed: boolean,
): Promise<CommandResult> {
  if (state !== 'complete') {
    return {
      exitCode: EXIT_CODES[state],
      lines: [],
      json: { state },
      errorLine: `nothing was deleted: the migration is ${state}, not complete; see migrate status`,
    }
  }
  const files = await filesThere(origins)
  if (files.length === 0)
    return cleanResult(['There is nothing left to delete.'], files, isConfirmed)
  if (!isConfirmed) {
    const lines = ['--yes deletes these files without overwriting them:', ...files.map(indented)]
    return { ...cleanResult(lines, files, isConfirmed), exitCode: 2, errorLine: NOT_CONFIRMED }
  }
  for (const file of files) await remove(file)
  return cleanResult(['Deleted without overwriting:', ...files.map(indented)], files, isConfirmed)
}

async function filesThere(origins: readonly OriginFile[]): Promise<string[]> {
  const files = new Set<string>()
  for (const { path, digest } of origins) {
    if (!(await isThere(path))) continue
    if ((await digestFile(path)) !== digest) {
      throw usageError(
        `nothing was deleted: ${path} is not the file that the journal recorded`,
        'file',
      )
    }
    files.add(path)
  }
  return [...files]
}

/** Does not follow links, because deleting a link would leave its target. */
async function digestFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  const { O_RDONLY, O_NONBLOCK = 0, O_NOFOLLOW = 0 } = constants
  try {
    const file = await open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW)
    for await (const bytes of file.createReadStream()) hash.update(bytes)
  } catch (error) {
    throw cannot('be read', path, error)
  }
  return hash.digest('hex')
}

const indented = (file: string): string => `  ${file}`

const cleanResult = (
  lines: readonly string[],
  files: readonly string[],
  isDeleted: boolean,
): CommandResult => ({ exitCode: 0, lines, json: { state: 'complete', files, isDeleted } })

/** @throws CommandFailure (2) if it cannot be determined. */
export async function isThere(file: string): Promise<boolean> {
  try {
    await lstat(file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw cannot('be accessed', file, error)
  }
}

async function remove(file: string): Promise<void> {
  await unlink(file).catch((error: unknown) => {
    throw cannot('be deleted', file, error)
  })
}

function cannot(what: string, file: string, error: unknown) {
  const { code } = error as NodeJS.ErrnoException
  return usageError(`${file} cannot ${what}${code ? ` (${code})` : ''}`, 'file')
}
