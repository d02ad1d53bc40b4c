import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Journal } from '../../../src/migration/journal/file-journal.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'

/** A folder of the test's own, which is removed after it. */
export async function folderOfTest(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'journal-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

export const fileOf = (folder: string): string => join(folder, 'journal.ndjson')

/** What a journal holds, line by line. */
export async function linesOf(journal: Journal): Promise<string[]> {
  const lines: string[] = []
  for await (const line of journal.read()) lines.push(line)
  return lines
}

/** Opens the journal, does something with it and closes it. */
export async function withJournal<Result>(
  folder: string,
  use: (journal: Journal) => Promise<Result>,
): Promise<Result> {
  const journal = await fileJournal(folder)
  try {
    return await use(journal)
  } finally {
    await journal.close()
  }
}

/** Writes appends to a new journal; resolves with the file's bytes after each, the header first. */
export async function filesAfter(
  folder: string,
  appends: readonly (readonly string[])[],
): Promise<Buffer[]> {
  return withJournal(folder, async (journal) => {
    const files = [await readFile(fileOf(folder))]
    for (const lines of appends) {
      await journal.append(lines)
      files.push(await readFile(fileOf(folder)))
    }
    return files
  })
}

/** What the journal holds after its file was replaced. */
export async function recovered(folder: string, bytes: Buffer): Promise<string[]> {
  await writeFile(fileOf(folder), bytes)
  return withJournal(folder, linesOf)
}
