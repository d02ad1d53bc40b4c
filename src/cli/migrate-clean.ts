import { lstat, unlink } from 'node:fs/promises'
import type { MigrationReport } from '../migration/run/report.js'
import type { CommandResult } from './command.js'
import { wrong } from './failure.js'
import { EXIT_CODES } from './migrate-states.js'

/**
 * Lists the source and the corrections, and deletes them when it is told to. Nothing is overwritten:
 * no program can know where a file system has written a file.
 *
 * @throws CommandFailure (2)
 */
export async function cleanAway(
  named: readonly string[],
  { state }: MigrationReport,
  isTold: boolean,
): Promise<CommandResult> {
  if (state !== 'complete') {
    return {
      exitCode: EXIT_CODES[state],
      lines: [],
      json: { state },
      complaint: `nothing was deleted: the migration is ${state}, not complete`,
    }
  }
  const files: string[] = []
  for (const file of new Set(named)) if (await isThere(file)) files.push(file)
  if (files.length === 0) return resultOf(['Nothing is left to delete.'], files, isTold)
  if (!isTold) {
    const lines = [
      'With --yes these are deleted, without being overwritten:',
      ...files.map(indented),
    ]
    return resultOf(lines, files, isTold)
  }
  for (const file of files) await remove(file)
  return resultOf(['Deleted, not overwritten:', ...files.map(indented)], files, isTold)
}

const indented = (file: string): string => `  ${file}`

const resultOf = (
  lines: readonly string[],
  files: readonly string[],
  isDeleted: boolean,
): CommandResult => ({ exitCode: 0, lines, json: { state: 'complete', files, isDeleted } })

/** @throws CommandFailure (2) when nobody can tell. */
export async function isThere(file: string): Promise<boolean> {
  try {
    await lstat(file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw cannot('be looked at', file, error)
  }
}

async function remove(file: string): Promise<void> {
  await unlink(file).catch((error: unknown) => {
    throw cannot('be deleted', file, error)
  })
}

function cannot(what: string, file: string, error: unknown) {
  const { code } = error as NodeJS.ErrnoException
  return wrong('file', `${file} cannot ${what}${code ? ` (${code})` : ''}`)
}
