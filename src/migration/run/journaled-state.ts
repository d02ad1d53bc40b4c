import type { Journal } from '../journal/journal.js'
import { applyEntry } from './state/apply-entry.js'
import { type Entry, writeEntry } from './state/journal-entry.js'
import { readEntries } from './state/read-entries.js'
import { createRunState, type RunState } from './state/run-state.js'

/** The journal and the sum of its entries, which never know different things. */
export interface Ledger {
  readonly state: RunState
  /** All of them are on disk, or none, when it resolves; then the state has them. */
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
    /** One after the other, so that the state has them in the journal's order. */
    write(...entries) {
      const written = last.then(() => append(entries))
      last = written.catch(ignore)
      return written
    },
    entries: () => readEntries(journal),
  }
}

function ignore(): void {}
