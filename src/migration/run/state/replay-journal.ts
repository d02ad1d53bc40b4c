import { parseJson } from '../../../base/json.js'
import type { Journal } from '../../journal/file-journal.js'
import { MigrationError } from '../migration-error.js'
import type { CallResult, Entry, EntryOf } from './journal-entry.js'
import {
  columnsFor,
  countOf,
  createRunState,
  detailsOf,
  type IdentityCode,
  type IdentityDetails,
  identityCode,
  NO_DETAILS,
  type RunState,
  setIdentity,
  sizeOf,
} from './run-state.js'

/** The journal and the state that results from its entries. The two always agree. */
export interface JournaledState {
  readonly state: RunState
  /** Appends all given entries or none. Once it resolves, the entries are on disk and in the state. */
  write(entries: Entry | readonly Entry[]): Promise<void>
}

/**
 * Reads a journal. What an entry contains is not checked: the journal has a digest of each line.
 *
 * @throws MigrationError `bad_journal` if a line is not an entry.
 */
export async function replayJournal(journal: Journal): Promise<JournaledState> {
  const state = createRunState()
  let line = 0
  for await (const written of journal.read()) {
    line += 1
    const entry = parseJson(written)
    if (!isEntry(entry)) throw new MigrationError('bad_journal', 'not an entry of a journal', line)
    applyEntry(state, entry)
  }
  let lastWrite: Promise<void> = Promise.resolve()

  async function append(entries: readonly Entry[]): Promise<void> {
    await journal.append(entries.map((entry) => JSON.stringify(entry)))
    for (const entry of entries) applyEntry(state, entry)
  }

  return {
    state,
    /** Writes are queued, so that the state gets the entries in the journal's order. */
    write(entries) {
      const written = lastWrite.then(() => append([entries].flat()))
      lastWrite = written.catch(() => {})
      return written
    },
  }
}

const isEntry = (value: unknown): value is Entry => Object.hasOwn(APPLY, String(Object(value).type))

/** Applies the next journal entry to the state, for a running step as for a replay. */
export function applyEntry(state: RunState, entry: Entry): void {
  state.ended = undefined
  const apply = APPLY[entry.type] as (state: RunState, entry: Entry) => void
  apply(state, entry)
}

const APPLY: {
  readonly [Type in Entry['type']]: (state: RunState, entry: EntryOf<Type>) => void
} = {
  begun(state, entry) {
    Object.assign(state, columnsFor(entry.identities))
    state.begun = entry
    state.tally.clear()
    state.tally.set('pending', entry.identities)
    state.foreignRows.clear()
  },
  preflight: applyPreflight,
  sent: applySent,
  settled: (state, { result }) => applyResult(state, result),
  row: applyRow,
  rest: applyRest,
  looked_up: applyLookUps,
  corrected: applyCorrections,
  retry(state, entry) {
    holdBack(state, entry)
    for (const recordIndex of entry.records) sendAgain(state, recordIndex)
    deleteRowsOfUnfailed(state)
  },
  ended(state, entry) {
    state.ended = entry
  },
}

function applyPreflight(state: RunState, entry: EntryOf<'preflight'>): void {
  for (let recordIndex = 0; recordIndex < sizeOf(state); recordIndex++) {
    setIdentity(state, recordIndex, 'pending', NO_DETAILS)
  }
  state.foreignRows.clear()
  setAll(state, entry.invalid, 'invalid')
  holdBack(state, entry)
  for (const row of entry.foreignRows) state.foreignRows.add(row)
  setAll(state, entry.hasAccount, 'staged')
  state.started = entry.started
}

function setAll(state: RunState, recordIndexes: readonly number[], code: IdentityCode): void {
  for (const recordIndex of recordIndexes) setIdentity(state, recordIndex, code)
}

function holdBack(
  state: RunState,
  { taken, twice }: Pick<EntryOf<'retry'>, 'taken' | 'twice'>,
): void {
  for (const [recordIndex, heldBy] of taken) {
    setIdentity(state, recordIndex, 'invalid', { code: 'login_taken', heldBy })
  }
  for (const [recordIndex, text] of twice) {
    setIdentity(state, recordIndex, 'invalid', { code: 'login_twice', text })
  }
}

function sendAgain(state: RunState, recordIndex: number): void {
  setIdentity(state, recordIndex, 'pending', NO_DETAILS)
  state.isDoubtful[recordIndex] = 1
}

function applySent(state: RunState, { call }: EntryOf<'sent'>): void {
  state.unanswered = call
  if (call.kind === 'delete') {
    // Reconciles after the deletion, because until then a call that got no reply may still take effect.
    markUnreconciled(state)
    return
  }
  for (const recordIndex of call.records) state.wasSent[recordIndex] = 1
  state.batches = call.batch
}

function applyResult(state: RunState, result: CallResult): void {
  const call = state.unanswered
  const batch = call?.kind === 'stage' ? call.records : []
  state.unanswered = undefined
  switch (result.outcome) {
    case 'staged':
      if (result.by === 'accounts') markReplyLost(state, batch)
      setAll(state, batch, 'staged')
      markUnsettled(state)
      return
    case 'absent':
      markReplyLost(state, batch)
      setAll(state, result.existing, 'staged')
      markUnsettled(state)
      return
    case 'rejected':
      for (const { record, errors, ...reason } of result.users) {
        const findings = errors.map((message) => ({ field: '', code: 'rejected', message }))
        setIdentity(state, record, 'invalid', { ...reasonOf(reason), errors: findings })
      }
      return
    case 'deleted':
      forgetRows(state, result.rows)
      return
    case 'unaccounted':
      state.blocked = true
      forgetRows(state, result.deleted)
  }
}

function markReplyLost(state: RunState, recordIndexes: readonly number[]): void {
  for (const recordIndex of recordIndexes) state.isDoubtful[recordIndex] = 1
  state.hasUnverifiedCall = true
}

function forgetRows(state: RunState, rows: readonly string[]): void {
  for (const row of rows) {
    state.rows.delete(row)
    state.toDelete.delete(row)
    state.toResolve.delete(row)
  }
}

/** States of identities that are already decided or still to be sent. */
const UNCHANGED: ReadonlySet<IdentityCode> = new Set([
  'pending',
  'invalid',
  'to_import',
  'accepted',
  'left_out',
])

function applyRow(state: RunState, entry: EntryOf<'row'>): void {
  const { row, record } = entry
  if (entry.as === 'stalled') {
    state.stalledRows.set(row, entry)
    return
  }
  state.rows.set(row, record)
  switch (entry.as) {
    case 'failed':
      setIdentity(state, record, 'failed', { rowId: row, ...reasonOf(entry) })
      return
    case 'duplicate':
      state.toDelete.add(row)
      if (identityCode(state, record) !== 'failed') return
      setIdentity(state, record, 'staged')
      markUnreconciled(state)
      return
    case 'unresolved':
      state.toDelete.add(row)
      state.toResolve.add(row)
      if (!UNCHANGED.has(identityCode(state, record))) setIdentity(state, record, 'unresolved')
      markUnreconciled(state)
      if (state.stalledRows.delete(row)) markUnsettled(state)
  }
}

type Reason = { readonly [name in 'code' | 'text' | 'heldBy']?: string | null | undefined }

const reasonOf = ({ code, text, heldBy }: Reason): IdentityDetails => ({
  ...(code != null && { code }),
  ...(text != null && { text }),
  ...(heldBy != null && { heldBy }),
})

function applyRest(state: RunState, { phase, reverify = false }: EntryOf<'rest'>): void {
  state.phase = phase
  if (phase === 'wait') state.stalledRows.clear()
  if (phase === 'reconcile') deleteRowsOfUnfailed(state)
  if (reverify) lookUpAgain(state)
}

const LOOKED_UP_AGAIN: ReadonlySet<IdentityCode> = new Set([
  'missing',
  'differs',
  'shared',
  'reconciled',
])

/** Identities that a person accepted or left out keep their state. */
function lookUpAgain(state: RunState): void {
  if (countOf(state, 'pending') === 0) state.hasUnverifiedCall = false
  for (let recordIndex = 0; recordIndex < sizeOf(state); recordIndex++) {
    if (LOOKED_UP_AGAIN.has(identityCode(state, recordIndex))) {
      setIdentity(state, recordIndex, 'staged')
    }
  }
  if (!state.blocked) return
  // The run resolves the deletion that did not account for each row like a call without a reply.
  state.blocked = false
  state.unanswered = { kind: 'delete', rows: [...state.toDelete] }
}

function applyLookUps(state: RunState, entry: EntryOf<'looked_up'>): void {
  const { same, differs, shared, missing, hasAccount, hasRow, toImport, refused } = entry
  for (const [recordIndex, coreUserId] of same) {
    setIdentity(state, recordIndex, 'reconciled', coreUserId)
  }
  for (const [recordIndex, coreUserId, differences] of differs) {
    setIdentity(state, recordIndex, 'differs', { coreUserId, differences })
  }
  for (const [recordIndex, heldBy] of missing) {
    setIdentity(state, recordIndex, 'missing', reasonOf({ heldBy }))
  }
  for (const [recordIndex, coreUserId] of shared) {
    const { differences } = detailsOf(state, recordIndex)
    const details = { coreUserId, ...(differences !== undefined && { differences }) }
    setIdentity(state, recordIndex, 'shared', details)
  }
  if (same.length + differs.length + missing.length + shared.length > 0) {
    deleteRowsOfUnfailed(state)
  }
  setAll(state, hasAccount, 'staged')
  setAll(state, hasRow, 'staged')
  setAll(state, toImport, 'to_import')
  for (const refusal of refused) setIdentity(state, refusal.record, 'failed', reasonOf(refusal))
  if (hasAccount.length + toImport.length + refused.length > 0) markUnreconciled(state)
  if (hasRow.length > 0) markUnsettled(state)
}

function applyCorrections(
  state: RunState,
  { source, replaced, leftOut, accepted }: EntryOf<'corrected'>,
): void {
  state.corrections.push(source)
  // The last look-ups may be days old, and a call without a reply may have taken effect since.
  markUnreconciled(state)
  for (const [recordIndex] of replaced) {
    sendAgain(state, recordIndex)
    state.sources[recordIndex] = state.corrections.length
  }
  for (const [recordIndex, , reason] of leftOut) {
    setIdentity(state, recordIndex, 'left_out', { ...detailsOf(state, recordIndex), reason })
  }
  for (const [recordIndex, , reason] of accepted) {
    setIdentity(state, recordIndex, 'accepted', { ...detailsOf(state, recordIndex), reason })
  }
  deleteRowsOfUnfailed(state)
}

/** Rows may be waiting at the core again: the run must wait, collect and reconcile again. */
function markUnsettled(state: RunState): void {
  state.phase = 'wait'
}

/** Identities must be looked up again, but no row waits at the core. */
function markUnreconciled(state: RunState): void {
  if (state.phase === 'done') state.phase = 'reconcile'
}

/**
 * Marks recorded rows for deletion. A row stays as long as its identity counts as failed. All rows of an
 * identity that has its account, is sent again or is left out are deleted.
 */
function deleteRowsOfUnfailed(state: RunState): void {
  for (const [row, recordIndex] of state.rows) {
    if (identityCode(state, recordIndex) !== 'failed') state.toDelete.add(row)
  }
}
