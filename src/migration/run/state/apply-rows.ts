import type { Entry, EntryOf } from './entry.js'
import { IDENTITY } from './identity-state.js'
import { assertOrdinal } from './ordinals.js'
import { awaitRest, type RunState, setIdentity, sizeOf, stateOf } from './run-state.js'

type RowEntry = Extract<
  Entry,
  {
    readonly type:
      | 'foreign_rows'
      | 'row'
      | 'rows_appeared'
      | 'delete_sent'
      | 'deleted'
      | 'delete_refused'
      | 'delete_unaccounted'
  }
>

export function applyRows(state: RunState, entry: RowEntry): void {
  switch (entry.type) {
    case 'foreign_rows':
      for (const row of entry.rows) state.foreignRows.add(row)
      return
    case 'row':
      recordRow(state, entry)
      return
    case 'rows_appeared':
      awaitRest(state)
      return
    case 'delete_sent':
      state.deleting = entry.rows
      // Meanwhile a call without reply may land.
      state.reconciled = false
      return
    case 'deleted':
      state.deleting = undefined
      forgetRows(state, entry.rows)
      return
    case 'delete_refused':
      state.deleting = undefined
      return
    case 'delete_unaccounted':
      state.deleting = undefined
      state.blocked = true
      forgetRows(state, entry.deleted)
  }
}

function recordRow(state: RunState, entry: EntryOf<'row'>): void {
  assertOrdinal(entry.of, sizeOf(state))
  state.rows.set(entry.row, entry.of)
  if (entry.as === 'twin') {
    recordTwin(state, entry)
    return
  }
  setIdentity(state, entry.of, IDENTITY.failed)
  state.failureCodes[entry.of] = numberOf(entry.code)
}

function recordTwin(state: RunState, entry: EntryOf<'row'>): void {
  state.toDelete.add(entry.row)
  if (stateOf(state, entry.of) !== IDENTITY.failed) return
  setIdentity(state, entry.of, IDENTITY.staged)
  state.reconciled = false
}

/**
 * A recorded row stays while its identity counts as failed. All rows leave of one that has its account,
 * that is sent again or that is left out.
 */
export function deleteRowsOfUnfailed(state: RunState): void {
  for (const [row, ordinal] of state.rows) {
    if (stateOf(state, ordinal) !== IDENTITY.failed) state.toDelete.add(row)
  }
}

function forgetRows(state: RunState, rows: readonly string[]): void {
  for (const row of rows) {
    state.rows.delete(row)
    state.toDelete.delete(row)
  }
}

/** Codes of our own, which are no numbers of the core's. */
const OWN_CODES: ReadonlyMap<string, number> = new Map([
  ['chunk_failed', 254],
  ['unknown_conflict', 255],
])

/** `E003` is 3; anything unknown is 0. */
export const numberOf = (code: string | undefined): number => {
  const own = OWN_CODES.get(code ?? '')
  if (own !== undefined) return own
  const digits = code === undefined ? null : /^E(\d{3})$/.exec(code)
  const number = Number(digits?.[1] ?? 0)
  return number < 254 ? number : 0
}
