import { parseJson } from '../../base/json.js'
import type { Journal } from '../journal/journal.js'
import { MigrationError } from './migration-error.js'
import { applyEntry } from './state/apply-entry.js'
import { type Entry, entrySchema, FORMAT } from './state/journal-entry.js'
import { createRunState, type RunState } from './state/run-state.js'

/** The journal and the state that results from its entries. The two always agree. */
export interface JournaledState {
  readonly state: RunState
  /** Appends all given entries or none. Once it resolves, the entries are on disk and in the state. */
  write(entries: Entry | readonly Entry[]): Promise<void>
}

/** @throws MigrationError `bad_journal` if a line is not an entry of this version. */
export async function replayJournal(journal: Journal): Promise<JournaledState> {
  const state = createRunState()
  let line = 0
  for await (const written of journal.read()) {
    line += 1
    const value = parseJson(written)
    const parsed = entrySchema.safeParse(value)
    if (!parsed.success) throw new MigrationError('bad_journal', faultOf(value), line)
    applyEntry(state, parsed.data)
  }
  let lastWrite: Promise<void> = Promise.resolve()

  async function append(entries: readonly Entry[]): Promise<void> {
    await journal.append(entries.map((entry) => JSON.stringify(entry)))
    for (const entry of entries) applyEntry(state, entry)
  }

  return {
    state,
    /** Writes are queued, so that the state gets the entries in the journal's order. */
    write(entries) {
      const written = lastWrite.then(() => append([entries].flat()))
      lastWrite = written.catch(() => {})
      return written
    },
  }
}

function faultOf(value: unknown): string {
  const format = Object(value).format
  if (typeof format !== 'number' || format === FORMAT) return 'not an entry of a journal'
  return format > FORMAT
    ? 'the journal is of a newer version of this package'
    : 'the journal is of an older version of this package: finish the migration with that version'
}
