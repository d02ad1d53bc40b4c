import type { Journal } from '../journal/journal.js'
import { applyEntry } from './state/apply-entry.js'
import { type Entry, writeEntry } from './state/journal-entry.js'
import { readEntries } from './state/read-entries.js'
import { createRunState, type RunState } from './state/run-state.js'

/** The journal and the state that results from its entries. The two always agree. */
export interface Ledger {
  readonly state: RunState
  /** Appends all entries or none. Once it resolves, they are on disk and in the state. */
  write(...entries: readonly Entry[]): Promise<void>
  entries(): AsyncIterable<Entry>
}

export async function openLedger(journal: Journal): Promise<Ledger> {
  const state = createRunState()
  for await (const entry of readEntries(journal)) applyEntry(state, entry)
  let last: Promise<void> = Promise.resolve()

  async function append(entries: readonly Entry[]): Promise<void> {
    await journal.append(entries.map(writeEntry))
    for (const entry of entries) applyEntry(state, entry)
  }

  return {
    state,
    /** Writes are queued, so that the state gets the entries in the journal's order. */
    write(...entries) {
      const written = last.then(() => append(entries))
      last = written.catch(ignore)
      return written
    },
    entries: () => readEntries(journal),
  }
}

function ignore(): void {}
