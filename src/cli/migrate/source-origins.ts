import type { Journal } from '../../migration/journal/journal.js'
import type { Origin } from '../../migration/run/state/journal-entry.js'
import { readEntries } from '../../migration/run/state/read-entries.js'

/** A file that a journal is of. */
export interface OriginFile {
  /** Absolute. */
  readonly path: string
  /** Hexadecimal SHA-256 of its bytes. */
  readonly digest: string
}

/** What a journal is of. */
export interface Origins {
  /** The core's address. `undefined` before the run has begun. */
  readonly core: string | undefined
  /** `undefined` before the run has begun. */
  readonly source: OriginFile | undefined
  /** Of the corrections made so far, in their order. */
  readonly corrections: readonly OriginFile[]
}

/**
 * What a resume has to read again besides the journal.
 *
 * @throws MigrationError `bad_journal`
 */
export async function readOrigins(journal: Journal): Promise<Origins> {
  let core: string | undefined
  let source: OriginFile | undefined
  const corrections: OriginFile[] = []
  for await (const entry of readEntries(journal)) {
    if (entry.type === 'begun') {
      core = entry.core
      source = fileOf(entry.source)
    }
    const file = entry.type === 'corrected' ? fileOf(entry.source) : undefined
    if (file !== undefined) corrections.push(file)
  }
  return { core, source, corrections }
}

/** The command's own sources are files. */
const fileOf = ({ name, file, digest }: Origin): OriginFile | undefined =>
  file ? { path: name, digest } : undefined
