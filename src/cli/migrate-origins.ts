import type { Journal } from '../migration/journal/journal.js'
import type { Origin } from '../migration/run/state/entry.js'
import { readEntries } from '../migration/run/state/read-entries.js'

/** What a journal is of: files in absolute paths. */
export interface Origins {
  /** The core's address. `undefined` before the run has begun. */
  readonly core: string | undefined
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
  let core: string | undefined
  let source: string | undefined
  const corrections: string[] = []
  for await (const entry of readEntries(journal)) {
    if (entry.type === 'begun') {
      core = entry.core
      source = pathOf(entry.source)
    }
    const path = entry.type === 'corrected' ? pathOf(entry.source) : undefined
    if (path !== undefined) corrections.push(path)
  }
  return { core, source, corrections }
}

/** The command's own sources are files. */
const pathOf = ({ name, file }: Origin): string | undefined => (file ? name : undefined)
