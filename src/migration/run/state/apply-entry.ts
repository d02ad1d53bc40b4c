import { MigrationError } from '../migration-error.js'
import { applyResult, applySent } from './apply-call.js'
import { IDENTITY, type IdentityCode, type LoginConflictCode, numberOf } from './identity-state.js'
import type { Entry, EntryOf } from './journal-entry.js'
import { assertOrdinal } from './record-indexes.js'
import {
  awaitRest,
  countOf,
  markUnreconciled,
  mayBeginAgain,
  type RunState,
  setAll,
  setIdentity,
  setOne,
  sizeOf,
  stateOf,
} from './run-state.js'

/** Applies the next journal entry to the state. */
export function applyEntry(state: RunState, entry: Entry): void {
  if (entry.type === 'begun') {
    begin(state, entry)
    return
  }
  if (state.begun === undefined) throw new MigrationError('bad_journal', 'it has no beginning')
  state.ended = undefined
  switch (entry.type) {
    case 'preflight':
      applyPreflight(state, entry)
      return
    case 'sent':
      applySent(state, entry)
      return
    case 'settled':
      applyResult(state, entry.result)
      return
    case 'row':
      applyRow(state, entry)
      return
    case 'rest':
      applyRest(state, entry)
      return
    case 'looked_up':
      applyLookUps(state, entry)
      return
    case 'corrected':
      applyCorrections(state, entry)
      return
    case 'retry':
      holdBack(state, entry)
      setAll(state, entry.records, IDENTITY.again)
      deleteRowsOfUnfailed(state)
      return
    case 'ended':
      state.ended = entry
  }
}

function begin(state: RunState, entry: EntryOf<'begun'>): void {
  if (!mayBeginAgain(state)) throw new MigrationError('bad_journal', 'it begins twice')
  state.begun = entry
  state.identities = new Uint8Array(entry.identities)
  state.failureCodes = new Uint8Array(entry.identities)
  state.recordsFrom = new Uint16Array(entry.identities)
  state.sentOnce = new Uint8Array(entry.identities)
  state.lostOnce = new Uint8Array(entry.identities)
  state.tally.fill(0)
  state.tally[IDENTITY.pending] = entry.identities
  state.foreignRows.clear()
  state.ended = undefined
}

function applyPreflight(state: RunState, entry: EntryOf<'preflight'>): void {
  if (state.started) throw new MigrationError('bad_journal', 'a preflight follows the start')
  if (entry.isFirst) {
    for (let ordinal = 0; ordinal < sizeOf(state); ordinal++) {
      setIdentity(state, ordinal, IDENTITY.pending)
    }
    state.failureCodes.fill(0)
    state.foreignRows.clear()
  }
  setAll(state, entry.invalid, IDENTITY.invalid)
  holdBack(state, entry)
  for (const row of entry.foreignRows) state.foreignRows.add(row)
  setAll(state, entry.hasAccount, IDENTITY.found)
  state.started = entry.started
}

function holdBack(
  state: RunState,
  { taken, twice }: Pick<EntryOf<'retry'>, 'taken' | 'twice'>,
): void {
  for (const [ordinal] of taken) setConflict(state, ordinal, 'login_taken')
  for (const [ordinal] of twice) setConflict(state, ordinal, 'login_twice')
}

function setConflict(state: RunState, ordinal: number, code: LoginConflictCode): void {
  setOne(state, ordinal, IDENTITY.invalid)
  state.failureCodes[ordinal] = numberOf(code)
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

function applyRow(state: RunState, entry: EntryOf<'row'>): void {
  const { row, record } = entry
  assertOrdinal(record, sizeOf(state))
  if (entry.as === 'stalled') {
    state.stalledRows.set(row, entry)
    return
  }
  state.rows.set(row, record)
  switch (entry.as) {
    case 'failed':
      fail(state, entry)
      return
    case 'duplicate':
      state.toDelete.add(row)
      if (stateOf(state, record) !== IDENTITY.failed) return
      setIdentity(state, record, IDENTITY.staged)
      markUnreconciled(state)
      return
    case 'unresolved':
      state.toDelete.add(row)
      state.toResolve.add(row)
      if (!KEEPS_ITS_STATE.has(stateOf(state, record))) {
        setIdentity(state, record, IDENTITY.unresolved)
      }
      markUnreconciled(state)
      if (state.stalledRows.delete(row)) awaitRest(state)
  }
}

function fail(
  state: RunState,
  { record, code }: { readonly record: number; readonly code?: string | undefined },
): void {
  setOne(state, record, IDENTITY.failed)
  state.failureCodes[record] = numberOf(code)
}

function applyRest(state: RunState, { phase, reverify = false }: EntryOf<'rest'>): void {
  state.phase = phase
  if (phase === 'wait') state.stalledRows.clear()
  if (phase === 'reconcile') deleteRowsOfUnfailed(state)
  if (reverify) lookAgain(state)
}

const LOOKED_UP_AGAIN: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.missing,
  IDENTITY.differs,
  IDENTITY.shared,
  IDENTITY.reconciled,
])

/** Identities that a person accepted or left out keep their state. */
function lookAgain(state: RunState): void {
  if (countOf(state, IDENTITY.pending, IDENTITY.again) === 0) state.lostSinceLook = false
  for (let ordinal = 0; ordinal < sizeOf(state); ordinal++) {
    if (LOOKED_UP_AGAIN.has(stateOf(state, ordinal))) setIdentity(state, ordinal, IDENTITY.staged)
  }
  if (!state.blocked) return
  state.blocked = false
  state.unanswered = { kind: 'delete', rows: [...state.toDelete] }
}

function applyLookUps(state: RunState, entry: EntryOf<'looked_up'>): void {
  const { same, differs, shared, missing, hasAccount, hasRow, toImport, refused } = entry
  for (const [ordinal] of same) setOne(state, ordinal, IDENTITY.reconciled)
  for (const [ordinal] of differs) setOne(state, ordinal, IDENTITY.differs)
  for (const [ordinal] of missing) setOne(state, ordinal, IDENTITY.missing)
  for (const [ordinal] of shared) setOne(state, ordinal, IDENTITY.shared)
  if (same.length + differs.length + missing.length + shared.length > 0) {
    deleteRowsOfUnfailed(state)
  }
  setAll(state, hasAccount, IDENTITY.found)
  setAll(state, hasRow, IDENTITY.found)
  setAll(state, toImport, IDENTITY.to_import)
  for (const refusal of refused) fail(state, refusal)
  if (hasAccount !== '' || toImport !== '' || refused.length > 0) markUnreconciled(state)
  if (hasRow !== '') awaitRest(state)
}

function applyCorrections(state: RunState, entry: EntryOf<'corrected'>): void {
  state.corrections.push(entry.source)
  // The last look-ups may be days old, and a call without a reply may have taken effect since.
  markUnreconciled(state)
  for (const [ordinal] of entry.replaced) {
    setOne(state, ordinal, IDENTITY.again)
    state.recordsFrom[ordinal] = state.corrections.length
  }
  for (const [ordinal] of entry.leftOut) setOne(state, ordinal, IDENTITY.left_out)
  for (const [ordinal] of entry.accepted) setOne(state, ordinal, IDENTITY.accepted)
  deleteRowsOfUnfailed(state)
}

/**
 * Marks recorded rows for deletion. A row stays as long as its identity counts as failed. All rows of an
 * identity that has its account, is sent again or is left out are deleted.
 */
function deleteRowsOfUnfailed(state: RunState): void {
  for (const [row, ordinal] of state.rows) {
    if (stateOf(state, ordinal) !== IDENTITY.failed) state.toDelete.add(row)
  }
}
