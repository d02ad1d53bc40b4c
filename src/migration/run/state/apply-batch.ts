import { MigrationError } from '../migration-error.js'
import { IDENTITY } from './identity-state.js'
import type { Entry, EntryOf } from './journal-entry.js'
import { isOrdinal, readOrdinals } from './record-indexes.js'
import { awaitRest, type RunState, setIdentity, sizeOf, type UndecidedBatch } from './run-state.js'

type BatchEntry = Extract<Entry, { readonly batch: number }>

export function applyBatch(state: RunState, entry: BatchEntry): void {
  if (entry.type === 'batch_sent') {
    send(state, entry)
    return
  }
  const batch = undecidedBatch(state, entry.batch)
  state.undecided = undefined
  switch (entry.type) {
    case 'batch_staged':
      if (entry.by === 'accounts') lose(state, batch)
      staged(state, batch)
      return
    case 'batch_rejected':
      rejected(state, batch, entry)
      return
    case 'batch_refused':
      sendLater(state, batch.ordinals)
      if (entry.code === 'too_large') {
        const half = Math.max(1, Math.floor(batch.ordinals.length / 2))
        state.batchLimit = Math.min(state.batchLimit, half)
      }
      return
    case 'batch_absent':
      absent(state, batch, entry)
  }
}

function send(state: RunState, entry: EntryOf<'batch_sent'>): void {
  if (state.undecided !== undefined) {
    throw new MigrationError('bad_journal', `batch ${entry.batch} begins before another has ended`)
  }
  const ordinals = [...readOrdinals(entry.of, sizeOf(state))]
  for (const ordinal of ordinals) {
    setIdentity(state, ordinal, IDENTITY.sent)
    state.sentOnce[ordinal] = 1
  }
  state.undecided = { batch: entry.batch, ordinals }
  state.batches = entry.batch
}

function staged(state: RunState, batch: UndecidedBatch): void {
  for (const ordinal of batch.ordinals) setIdentity(state, ordinal, IDENTITY.staged)
  awaitRest(state)
}

function rejected(state: RunState, batch: UndecidedBatch, entry: EntryOf<'batch_rejected'>): void {
  sendLater(state, batch.ordinals)
  // The batch limit was halved because of this record alone, so the other records get full batches again.
  if (batch.ordinals.length === 1) state.batchLimit = Number.POSITIVE_INFINITY
  for (const { of } of entry.users) {
    if (!isOrdinal(of, sizeOf(state))) continue
    setIdentity(state, of, IDENTITY.invalid)
    state.failureCodes[of] = 0
  }
}

function absent(state: RunState, batch: UndecidedBatch, entry: EntryOf<'batch_absent'>): void {
  lose(state, batch)
  sendLater(state, batch.ordinals)
  for (const ordinal of readOrdinals(entry.found, sizeOf(state))) {
    setIdentity(state, ordinal, IDENTITY.found)
  }
  awaitRest(state)
}

function lose(state: RunState, { ordinals }: UndecidedBatch): void {
  for (const ordinal of ordinals) state.lostOnce[ordinal] = 1
  state.lostSinceLook = true
}

function sendLater(state: RunState, ordinals: readonly number[]): void {
  for (const ordinal of ordinals) {
    const again = (state.recordsFrom[ordinal] ?? 0) > 0 || state.failureCodes[ordinal] !== 0
    setIdentity(state, ordinal, again ? IDENTITY.again : IDENTITY.pending)
  }
}

function undecidedBatch(state: RunState, batch: number): UndecidedBatch {
  if (state.undecided?.batch === batch) return state.undecided
  throw new MigrationError('bad_journal', `batch ${batch} ends without having begun`)
}
