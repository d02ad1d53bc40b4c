import type { Journal } from '../migration/journal/journal.js'
import { type Origin, readEntries } from '../migration/run/state/entry.js'

/** The files that a journal names, in absolute paths. */
export interface Origins {
  /** `undefined` before the run has begun. */
  readonly source: string | undefined
  /** Of the corrections made so far, in their order. */
  readonly corrections: readonly string[]
}

/**
 * What a resume has to read again besides the journal.
 *
 * @throws MigrationError `bad_journal`
 */
export async function readOrigins(journal: Journal): Promise<Origins> {
  let source: string | undefined
  const corrections: string[] = []
  for await (const entry of readEntries(journal)) {
    if (entry.type === 'begun') source = pathOf(entry.source)
    if (entry.type === 'corrected') corrections.push(...[pathOf(entry.source) ?? []].flat())
  }
  return { source, corrections }
}

/** The command's own sources are files. */
const pathOf = ({ name, file }: Origin): string | undefined => (file ? name : undefined)
