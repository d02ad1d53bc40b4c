import { MigrationError } from '../migration-error.js'
import { IDENTITY } from './identity-state.js'
import type { CallResult, EntryOf, ResultOf } from './journal-entry.js'
import { isOrdinal, readOrdinals } from './record-indexes.js'
import {
  awaitRest,
  markUnreconciled,
  type RunState,
  type SentBatch,
  setAll,
  setIdentity,
  sizeOf,
} from './run-state.js'

export function applySent(state: RunState, { call }: EntryOf<'sent'>): void {
  if (state.unanswered !== undefined) {
    throw new MigrationError('bad_journal', 'a call begins before another has ended')
  }
  if (call.kind === 'delete') {
    state.unanswered = call
    // A call without a reply may take effect meanwhile.
    markUnreconciled(state)
    return
  }
  const ordinals = [...readOrdinals(call.records, sizeOf(state))]
  for (const ordinal of ordinals) {
    setIdentity(state, ordinal, IDENTITY.sent)
    state.sentOnce[ordinal] = 1
  }
  state.unanswered = { kind: 'stage', batch: call.batch, ordinals }
  state.batches = call.batch
}

export function applyResult(state: RunState, result: CallResult): void {
  const call = state.unanswered
  if (call === undefined) {
    throw new MigrationError('bad_journal', 'a call ends without having begun')
  }
  state.unanswered = undefined
  if (call.kind === 'stage') {
    applyStageResult(state, call, result)
    return
  }
  switch (result.outcome) {
    case 'deleted':
      forgetRows(state, result.rows)
      return
    case 'unaccounted':
      state.blocked = true
      forgetRows(state, result.deleted)
      return
    case 'refused':
      return
    default:
      throw new MigrationError('bad_journal', 'a deletion ends like a batch')
  }
}

function applyStageResult(state: RunState, batch: SentBatch, result: CallResult): void {
  switch (result.outcome) {
    case 'staged':
      if (result.by === 'accounts') lose(state, batch)
      for (const ordinal of batch.ordinals) setIdentity(state, ordinal, IDENTITY.staged)
      awaitRest(state)
      return
    case 'rejected':
      applyRejection(state, batch, result)
      return
    case 'refused':
      sendLater(state, batch.ordinals)
      if (result.code === 'too_large') {
        const half = Math.max(1, Math.floor(batch.ordinals.length / 2))
        state.batchLimit = Math.min(state.batchLimit, half)
      }
      return
    case 'absent':
      lose(state, batch)
      sendLater(state, batch.ordinals)
      setAll(state, result.existing, IDENTITY.found)
      awaitRest(state)
      return
    default:
      throw new MigrationError('bad_journal', 'a batch ends like a deletion')
  }
}

function applyRejection(state: RunState, batch: SentBatch, { users }: ResultOf<'rejected'>): void {
  sendLater(state, batch.ordinals)
  // The batch limit was halved because of this record alone, so the other records get full batches again.
  if (batch.ordinals.length === 1) state.batchLimit = Number.POSITIVE_INFINITY
  for (const { record } of users) {
    if (!isOrdinal(record, sizeOf(state))) continue
    setIdentity(state, record, IDENTITY.invalid)
    state.failureCodes[record] = 0
  }
}

function lose(state: RunState, { ordinals }: SentBatch): void {
  for (const ordinal of ordinals) state.lostOnce[ordinal] = 1
  state.lostSinceLook = true
}

function sendLater(state: RunState, ordinals: readonly number[]): void {
  for (const ordinal of ordinals) {
    const again = (state.recordsFrom[ordinal] ?? 0) > 0 || state.failureCodes[ordinal] !== 0
    setIdentity(state, ordinal, again ? IDENTITY.again : IDENTITY.pending)
  }
}

function forgetRows(state: RunState, rows: readonly string[]): void {
  for (const row of rows) {
    state.rows.delete(row)
    state.toDelete.delete(row)
    state.toResolve.delete(row)
  }
}
