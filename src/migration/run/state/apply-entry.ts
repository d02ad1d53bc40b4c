import { MigrationError } from '../migration-error.js'
import { applyBatch } from './apply-batch.js'
import { applyLookUps } from './apply-look-ups.js'
import { applyRows, deleteRowsOfUnfailed, numberOf } from './apply-rows.js'
import { IDENTITY, type IdentityCode, type LoginConflictCode } from './identity-state.js'
import type { Entry, EntryOf } from './journal-entry.js'
import { assertOrdinal, readOrdinals } from './record-indexes.js'
import { awaitRest, mayBeginAgain, type RunState, setIdentity, sizeOf } from './run-state.js'

/** Applies the next journal entry to the state. */
export function applyEntry(state: RunState, entry: Entry): void {
  if (entry.type === 'begun') {
    begin(state, entry)
    return
  }
  if (state.begun === undefined) throw new MigrationError('bad_journal', 'it has no beginning')
  state.ended = undefined
  switch (entry.type) {
    case 'batch_sent':
    case 'batch_staged':
    case 'batch_rejected':
    case 'batch_refused':
    case 'batch_absent':
      applyBatch(state, entry)
      return
    case 'foreign_rows':
    case 'row':
    case 'rows_appeared':
    case 'rows_stalled':
    case 'delete_decided':
    case 'identities_resolved':
    case 'delete_sent':
    case 'deleted':
    case 'delete_refused':
    case 'delete_unaccounted':
      applyRows(state, entry)
      return
    case 'looked_up':
    case 'reconciled':
    case 'reconcile_asked':
      applyLookUps(state, entry)
      return
    case 'login_conflicts':
      holdBack(state, entry)
      return
    case 'corrected':
      correct(state, entry)
      return
    case 'again':
      sendAgain(state, entry)
      return
    default:
      applyMark(state, entry)
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

type Mark = Extract<
  Entry,
  {
    readonly type: 'examined' | 'invalid' | 'found' | 'started' | 'waited' | 'collected' | 'ended'
  }
>

function applyMark(state: RunState, entry: Mark): void {
  switch (entry.type) {
    case 'examined':
      examineAgain(state)
      return
    case 'invalid':
      setAll(state, entry.of, IDENTITY.invalid)
      return
    case 'found':
      setAll(state, entry.of, IDENTITY.found)
      state.reconciled = false
      if (entry.by === 'row') awaitRest(state)
      return
    case 'started':
      state.started = true
      return
    case 'waited':
      state.waited = true
      return
    case 'collected':
      state.collected = true
      deleteRowsOfUnfailed(state)
      return
    case 'ended':
      state.ended = entry
  }
}

function examineAgain(state: RunState): void {
  if (state.started) throw new MigrationError('bad_journal', 'a preflight follows the start')
  for (let ordinal = 0; ordinal < sizeOf(state); ordinal++) {
    setIdentity(state, ordinal, IDENTITY.pending)
  }
  state.failureCodes.fill(0)
  state.foreignRows.clear()
}

function holdBack(state: RunState, { taken, twice }: EntryOf<'login_conflicts'>): void {
  for (const [ordinal] of taken) setConflict(state, ordinal, 'login_taken')
  for (const [ordinal] of twice) setConflict(state, ordinal, 'login_twice')
}

function setConflict(state: RunState, ordinal: number, code: LoginConflictCode): void {
  assertOrdinal(ordinal, sizeOf(state))
  setIdentity(state, ordinal, IDENTITY.invalid)
  state.failureCodes[ordinal] = numberOf(code)
}

function setAll(state: RunState, ordinals: string, code: IdentityCode): void {
  for (const ordinal of readOrdinals(ordinals, sizeOf(state))) setIdentity(state, ordinal, code)
}

function correct(state: RunState, entry: EntryOf<'corrected'>): void {
  state.corrections.push(entry.source)
  // The last look-ups may be days old, and a call without a reply may have taken effect since.
  state.reconciled = false
  for (const [ordinal] of entry.replaced) {
    assertOrdinal(ordinal, sizeOf(state))
    state.recordsFrom[ordinal] = state.corrections.length
    setIdentity(state, ordinal, IDENTITY.again)
  }
  for (const [ordinal] of entry.leftOut) {
    assertOrdinal(ordinal, sizeOf(state))
    setIdentity(state, ordinal, IDENTITY.left_out)
  }
  for (const [ordinal] of entry.accepted) {
    assertOrdinal(ordinal, sizeOf(state))
    setIdentity(state, ordinal, IDENTITY.accepted)
  }
  deleteRowsOfUnfailed(state)
}

function sendAgain(state: RunState, entry: EntryOf<'again'>): void {
  setAll(state, entry.of, IDENTITY.again)
  deleteRowsOfUnfailed(state)
}
