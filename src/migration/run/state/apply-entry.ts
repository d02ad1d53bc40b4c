import { MigrationError } from '../migration-error.js'
import { applyResult, applySent } from './apply-call.js'
import {
  IDENTITY_STATE,
  type IdentityCode,
  type LoginConflictCode,
  numberOf,
} from './identity-state.js'
import type { Entry, EntryOf } from './journal-entry.js'
import { assertRecordIndex } from './record-indexes.js'
import {
  countOf,
  identityCode,
  markUnreconciled,
  markUnsettled,
  mayRestart,
  type RunState,
  setAll,
  setIdentity,
  setOne,
  sizeOf,
} from './run-state.js'

/** Applies the next journal entry to the state. */
export function applyEntry(state: RunState, entry: Entry): void {
  if (entry.type === 'begun') {
    begin(state, entry)
    return
  }
  if (state.begun === undefined) throw new MigrationError('bad_journal', 'it has no entry `begun`')
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
      setAll(state, entry.records, IDENTITY_STATE.retry)
      deleteRowsOfUnfailed(state)
      return
    case 'ended':
      state.ended = entry
  }
}

function begin(state: RunState, entry: EntryOf<'begun'>): void {
  if (!mayRestart(state)) throw new MigrationError('bad_journal', 'it has two entries `begun`')
  state.begun = entry
  state.identities = new Uint8Array(entry.identities)
  state.failureCodes = new Uint8Array(entry.identities)
  state.recordSource = new Uint16Array(entry.identities)
  state.wasSent = new Uint8Array(entry.identities)
  state.hadLostReply = new Uint8Array(entry.identities)
  state.tally.fill(0)
  state.tally[IDENTITY_STATE.pending] = entry.identities
  state.foreignRows.clear()
  state.ended = undefined
}

function applyPreflight(state: RunState, entry: EntryOf<'preflight'>): void {
  if (state.started) throw new MigrationError('bad_journal', 'a preflight follows the start')
  for (let recordIndex = 0; recordIndex < sizeOf(state); recordIndex++) {
    setIdentity(state, recordIndex, IDENTITY_STATE.pending)
  }
  state.failureCodes.fill(0)
  state.foreignRows.clear()
  setAll(state, entry.invalid, IDENTITY_STATE.invalid)
  holdBack(state, entry)
  for (const row of entry.foreignRows) state.foreignRows.add(row)
  setAll(state, entry.hasAccount, IDENTITY_STATE.existing)
  state.started = entry.started
}

function holdBack(
  state: RunState,
  { taken, twice }: Pick<EntryOf<'retry'>, 'taken' | 'twice'>,
): void {
  for (const [recordIndex] of taken) setConflict(state, recordIndex, 'login_taken')
  for (const [recordIndex] of twice) setConflict(state, recordIndex, 'login_twice')
}

function setConflict(state: RunState, recordIndex: number, code: LoginConflictCode): void {
  setOne(state, recordIndex, IDENTITY_STATE.invalid)
  state.failureCodes[recordIndex] = numberOf(code)
}

/** States of identities that are already decided or still to be sent. */
const UNCHANGED: ReadonlySet<IdentityCode> = new Set([
  IDENTITY_STATE.pending,
  IDENTITY_STATE.invalid,
  IDENTITY_STATE.retry,
  IDENTITY_STATE.sent,
  IDENTITY_STATE.to_import,
  IDENTITY_STATE.accepted,
  IDENTITY_STATE.left_out,
])

function applyRow(state: RunState, entry: EntryOf<'row'>): void {
  const { row, record } = entry
  assertRecordIndex(record, sizeOf(state))
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
      if (identityCode(state, record) !== IDENTITY_STATE.failed) return
      setIdentity(state, record, IDENTITY_STATE.staged)
      markUnreconciled(state)
      return
    case 'unresolved':
      state.toDelete.add(row)
      state.toResolve.add(row)
      if (!UNCHANGED.has(identityCode(state, record))) {
        setIdentity(state, record, IDENTITY_STATE.unresolved)
      }
      markUnreconciled(state)
      if (state.stalledRows.delete(row)) markUnsettled(state)
  }
}

function fail(
  state: RunState,
  { record, code }: { readonly record: number; readonly code?: string | undefined },
): void {
  setOne(state, record, IDENTITY_STATE.failed)
  state.failureCodes[record] = numberOf(code)
}

function applyRest(state: RunState, { phase, reverify = false }: EntryOf<'rest'>): void {
  state.phase = phase
  if (phase === 'wait') state.stalledRows.clear()
  if (phase === 'reconcile') deleteRowsOfUnfailed(state)
  if (reverify) lookUpAgain(state)
}

const LOOKED_UP_AGAIN: ReadonlySet<IdentityCode> = new Set([
  IDENTITY_STATE.missing,
  IDENTITY_STATE.differs,
  IDENTITY_STATE.shared,
  IDENTITY_STATE.reconciled,
])

/** Identities that a person accepted or left out keep their state. */
function lookUpAgain(state: RunState): void {
  if (countOf(state, IDENTITY_STATE.pending, IDENTITY_STATE.retry) === 0)
    state.hasUnverifiedCall = false
  for (let recordIndex = 0; recordIndex < sizeOf(state); recordIndex++) {
    if (LOOKED_UP_AGAIN.has(identityCode(state, recordIndex)))
      setIdentity(state, recordIndex, IDENTITY_STATE.staged)
  }
  if (!state.blocked) return
  // The run resolves the deletion that did not account for each row like a call without a reply.
  state.blocked = false
  state.unanswered = { kind: 'delete', rows: [...state.toDelete] }
}

function applyLookUps(state: RunState, entry: EntryOf<'looked_up'>): void {
  const { same, differs, shared, missing, hasAccount, hasRow, toImport, refused } = entry
  for (const [recordIndex] of same) setOne(state, recordIndex, IDENTITY_STATE.reconciled)
  for (const [recordIndex] of differs) setOne(state, recordIndex, IDENTITY_STATE.differs)
  for (const [recordIndex] of missing) setOne(state, recordIndex, IDENTITY_STATE.missing)
  for (const [recordIndex] of shared) setOne(state, recordIndex, IDENTITY_STATE.shared)
  if (same.length + differs.length + missing.length + shared.length > 0) {
    deleteRowsOfUnfailed(state)
  }
  setAll(state, hasAccount, IDENTITY_STATE.existing)
  setAll(state, hasRow, IDENTITY_STATE.existing)
  setAll(state, toImport, IDENTITY_STATE.to_import)
  for (const refusal of refused) fail(state, refusal)
  if (hasAccount !== '' || toImport !== '' || refused.length > 0) markUnreconciled(state)
  if (hasRow !== '') markUnsettled(state)
}

function applyCorrections(state: RunState, entry: EntryOf<'corrected'>): void {
  state.corrections.push(entry.source)
  // The last look-ups may be days old, and a call without a reply may have taken effect since.
  markUnreconciled(state)
  for (const [recordIndex] of entry.replaced) {
    setOne(state, recordIndex, IDENTITY_STATE.retry)
    state.recordSource[recordIndex] = state.corrections.length
  }
  for (const [recordIndex] of entry.leftOut) setOne(state, recordIndex, IDENTITY_STATE.left_out)
  for (const [recordIndex] of entry.accepted) setOne(state, recordIndex, IDENTITY_STATE.accepted)
  deleteRowsOfUnfailed(state)
}

/**
 * Marks recorded rows for deletion. A row stays as long as its identity counts as failed. All rows of an
 * identity that has its account, is sent again or is left out are deleted.
 */
function deleteRowsOfUnfailed(state: RunState): void {
  for (const [row, recordIndex] of state.rows) {
    if (identityCode(state, recordIndex) !== IDENTITY_STATE.failed) state.toDelete.add(row)
  }
}
