import { MigrationError } from '../migration-error.js'
import { IDENTITY_STATE, numberOf } from './identity-state.js'
import type { CallResult, EntryOf, ResultOf } from './journal-entry.js'
import { readRecordIndexes } from './record-indexes.js'
import {
  markUnreconciled,
  markUnsettled,
  type RunState,
  type SentBatch,
  setAll,
  setIdentity,
  setOne,
  sizeOf,
} from './run-state.js'

export function applySent(state: RunState, { call }: EntryOf<'sent'>): void {
  if (state.unanswered !== undefined) {
    throw new MigrationError('bad_journal', 'a call begins before another has ended')
  }
  if (call.kind === 'delete') {
    state.unanswered = call
    // Reconciles after the deletion, because until then a call that got no reply may still take effect.
    markUnreconciled(state)
    return
  }
  const recordIndexes = [...readRecordIndexes(call.records, sizeOf(state))]
  for (const recordIndex of recordIndexes) {
    setIdentity(state, recordIndex, IDENTITY_STATE.sent)
    state.wasSent[recordIndex] = 1
  }
  state.unanswered = { kind: 'stage', batch: call.batch, recordIndexes }
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
      if (result.by === 'accounts') markReplyLost(state, batch)
      for (const recordIndex of batch.recordIndexes)
        setIdentity(state, recordIndex, IDENTITY_STATE.staged)
      markUnsettled(state)
      return
    case 'rejected':
      applyRejection(state, batch, result)
      return
    case 'refused':
      sendLater(state, batch.recordIndexes)
      if (result.code === 'too_large') {
        const half = Math.max(1, Math.floor(batch.recordIndexes.length / 2))
        state.batchLimit = Math.min(state.batchLimit, half)
      }
      return
    case 'absent':
      markReplyLost(state, batch)
      sendLater(state, batch.recordIndexes)
      setAll(state, result.existing, IDENTITY_STATE.existing)
      markUnsettled(state)
      return
    default:
      throw new MigrationError('bad_journal', 'a batch ends like a deletion')
  }
}

function applyRejection(state: RunState, batch: SentBatch, { users }: ResultOf<'rejected'>): void {
  sendLater(state, batch.recordIndexes)
  // The limit was lowered because of this record, so the other records get full batches again.
  if (batch.recordIndexes.length === 1) state.batchLimit = Number.POSITIVE_INFINITY
  for (const { record, code } of users) {
    setOne(state, record, IDENTITY_STATE.invalid)
    state.failureCodes[record] = code === undefined ? 0 : numberOf(code)
  }
}

function markReplyLost(state: RunState, { recordIndexes }: SentBatch): void {
  for (const recordIndex of recordIndexes) state.hadLostReply[recordIndex] = 1
  state.hasUnverifiedCall = true
}

function sendLater(state: RunState, recordIndexes: readonly number[]): void {
  for (const recordIndex of recordIndexes) {
    const isRetry =
      (state.recordSource[recordIndex] ?? 0) > 0 || state.failureCodes[recordIndex] !== 0
    setIdentity(state, recordIndex, isRetry ? IDENTITY_STATE.retry : IDENTITY_STATE.pending)
  }
}

function forgetRows(state: RunState, rows: readonly string[]): void {
  for (const row of rows) {
    state.rows.delete(row)
    state.toDelete.delete(row)
    state.toResolve.delete(row)
  }
}
