import type { Journal } from '../../migration/journal/journal.js'
import { readEntries } from '../../migration/run/journaled-state.js'
import type { Origin } from '../../migration/run/state/journal-entry.js'

/** A source or corrections file of a journal. */
export interface OriginFile {
  /** Absolute. */
  readonly path: string
  /** The SHA-256 of its bytes, in hexadecimal. */
  readonly digest: string
}

/** The core and the files of a journal. */
export interface Origins {
  /** The core's address; `undefined` before the run begins. */
  readonly core: string | undefined
  /** `undefined` before the run begins. */
  readonly source: OriginFile | undefined
  /** The corrections made so far, in their order. */
  readonly corrections: readonly OriginFile[]
}

/**
 * Reads from the journal which files a resume must read again, and the core's address.
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

/** Returns `undefined` if the origin is not a file; the command's own sources are files. */
const fileOf = ({ name, file, digest }: Origin): OriginFile | undefined =>
  file ? { path: name, digest } : undefined
