import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Source, SourceRecord } from '../../../src/migration/source/source.js'
import { type OpenSource, openSource } from '../../../src/migration/source/source.js'

export const MAX_BYTES = 1000

/** A file of the test's own in a folder that is removed after it. */
export async function fileOf(content: string | Uint8Array): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'source-test-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'users.ndjson')
  await writeFile(file, content)
  return file
}

export const openFor = (source: Source): OpenSource =>
  openSource(source, { maxRecordBytes: MAX_BYTES })

/** A source in a file. */
export async function sourceOf(content: string | Uint8Array): Promise<OpenSource> {
  return openFor({ file: await fileOf(content) })
}

export async function recordsOf(source: OpenSource): Promise<SourceRecord[]> {
  const records: SourceRecord[] = []
  for await (const record of source.records()) records.push(record)
  return records
}

export async function* each<Item>(items: readonly Item[]): AsyncGenerator<Item> {
  yield* items
}
