import { IDENTITY, type IdentityCode } from './identity-state.js'
import type { Entry, EntryOf } from './journal-entry.js'
import { assertOrdinal, readOrdinals } from './record-indexes.js'
import { awaitRest, type RunState, setIdentity, sizeOf, stateOf } from './run-state.js'

type RowEntry = Extract<
  Entry,
  {
    readonly type:
      | 'foreign_rows'
      | 'row'
      | 'rows_appeared'
      | 'rows_stalled'
      | 'delete_decided'
      | 'identities_resolved'
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
      state.stalledRows.clear()
      awaitRest(state)
      return
    case 'rows_stalled':
      for (const row of entry.rows) {
        assertOrdinal(row.of, sizeOf(state))
        state.stalledRows.set(row.row, row)
      }
      return
    case 'delete_decided':
      decideDeletion(state, entry)
      return
    case 'identities_resolved':
      recordResolved(state, entry)
      return
    case 'delete_sent':
      state.deleting = entry.rows
      // A call without a reply may take effect meanwhile.
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

/** Identities that are already decided or still to be sent. */
const KEEPS_ITS_STATE: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.pending,
  IDENTITY.invalid,
  IDENTITY.again,
  IDENTITY.sent,
  IDENTITY.to_import,
  IDENTITY.accepted,
  IDENTITY.left_out,
])

function decideDeletion(state: RunState, { rows }: EntryOf<'delete_decided'>): void {
  let wasStalled = false
  for (const [row, ordinal] of rows) {
    assertOrdinal(ordinal, sizeOf(state))
    state.rows.set(row, ordinal)
    state.toDelete.add(row)
    state.toResolve.add(row)
    if (state.stalledRows.delete(row)) wasStalled = true
    if (!KEEPS_ITS_STATE.has(stateOf(state, ordinal))) {
      setIdentity(state, ordinal, IDENTITY.unresolved)
    }
  }
  state.reconciled = false
  if (wasStalled) awaitRest(state)
}

function recordResolved(
  state: RunState,
  { found, toImport, refused }: EntryOf<'identities_resolved'>,
): void {
  const size = sizeOf(state)
  for (const ordinal of readOrdinals(found, size)) setIdentity(state, ordinal, IDENTITY.found)
  for (const ordinal of readOrdinals(toImport, size))
    setIdentity(state, ordinal, IDENTITY.to_import)
  for (const { of, code } of refused) {
    assertOrdinal(of, size)
    setIdentity(state, of, IDENTITY.failed)
    state.failureCodes[of] = numberOf(code)
  }
  state.reconciled = false
}

function recordTwin(state: RunState, entry: EntryOf<'row'>): void {
  state.toDelete.add(entry.row)
  if (stateOf(state, entry.of) !== IDENTITY.failed) return
  setIdentity(state, entry.of, IDENTITY.staged)
  state.reconciled = false
}

/**
 * Marks recorded rows for deletion. A row stays as long as its identity counts as failed. All rows of an
 * identity that has its account, is sent again or is left out are deleted.
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
    state.toResolve.delete(row)
  }
}

const FIRST_OWN_NUMBER = 252

/** Codes of this package. The core's codes end at E046, so these numbers are unused. */
const OWN_CODES: ReadonlyMap<string, number> = new Map([
  ['login_taken', FIRST_OWN_NUMBER],
  ['login_twice', 253],
  ['chunk_failed', 254],
  ['unknown_conflict', 255],
])

const CORE_CODE = /^E(\d{3})$/

/** Whether a record can fail or be held back with this code. */
export const isFailureCode = (code: unknown): code is string =>
  typeof code === 'string' && (OWN_CODES.has(code) || CORE_CODE.test(code))

/** Returns 3 for `E003`, and 0 for an unknown code. */
export const numberOf = (code: string | undefined): number => {
  const own = OWN_CODES.get(code ?? '')
  if (own !== undefined) return own
  const number = Number(CORE_CODE.exec(code ?? '')?.[1] ?? 0)
  return number < FIRST_OWN_NUMBER ? number : 0
}
