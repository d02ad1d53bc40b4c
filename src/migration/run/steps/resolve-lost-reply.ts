import type { CoreError } from '../../core/core-error.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import type { ResultOf } from '../state/journal-entry.js'
import { writeOrdinals } from '../state/record-indexes.js'
import type { SentBatch, SentDeletion } from '../state/run-state.js'
import { ownRowOf } from './records.js'

interface LostReply {
  /** When the call was abandoned, from `timing.elapsedMs`. */
  readonly givenUpAt: number
  /** The error that ends the run if too many calls get no reply. */
  readonly error?: CoreError
}

/**
 * Determines whether a call without a reply took effect. Only after `settleSeconds` is the core assumed to
 * have ended the call, so before that nothing counts as proof that it had no effect.
 */
export async function resolveLostReply(work: Work, { givenUpAt, error }: LostReply): Promise<void> {
  const { timing, settings, ledger } = work
  const call = ledger.state.unanswered
  if (call === undefined) return
  if (error !== undefined && call.kind === 'stage') {
    work.tell('reply_lost', { batch: call.batch, users: call.ordinals.length })
  }
  const settledAt = givenUpAt + settings.settleSeconds * 1000
  let hasEnded = timing.elapsedMs() >= settledAt
  let result = await resultOf(work, call, hasEnded)
  while (result === undefined) {
    await timing.sleep(Math.max(0, settledAt - timing.elapsedMs()), work.signal)
    hasEnded = true
    result = await resultOf(work, call, hasEnded)
  }
  await ledger.write({ type: 'settled', result })
  if (result.outcome === 'staged') work.lostInARow = 0
  if (call.kind === 'stage') {
    const users = result.outcome === 'staged' ? call.ordinals.length : 0
    work.tell('reply_resolved', { batch: call.batch, users })
  }
  if (result.outcome === 'deleted') work.tell('rows_deleted', { users: result.rows.length })
  const isLost =
    result.outcome === 'absent' ||
    (call.kind === 'delete' &&
      result.outcome === 'deleted' &&
      result.rows.length < call.rows.length)
  if (isLost) countLostCall(work, error)
}

type Resolved = ResultOf<'staged' | 'absent' | 'deleted'>

/** Returns `undefined` if the call may still take effect. */
const resultOf = (
  work: Work,
  call: SentBatch | SentDeletion,
  hasEnded: boolean,
): Promise<Resolved | undefined> =>
  call.kind === 'stage' ? batchResult(work, call, hasEnded) : deletionResult(work, call, hasEnded)

/**
 * A call stages all of its users or none, and a staged user has a row or an account. So one new row proves
 * that all were staged, unless an earlier call without a reply may have staged it. A user with neither
 * proves that none was staged.
 */
async function batchResult(
  work: Work,
  { ordinals }: SentBatch,
  hasEnded: boolean,
): Promise<Resolved | undefined> {
  const existing = await newRowsOf(work, ordinals)
  if (existing === 'proof') return { outcome: 'staged', by: 'row' }
  const all = await addAccounts(work, { ordinals, existing, isThorough: hasEnded })
  if (all.size === ordinals.length) return { outcome: 'staged', by: 'accounts' }
  if (!hasEnded) return undefined
  const inOrder = ordinals.filter((ordinal) => all.has(ordinal))
  return { outcome: 'absent', existing: writeOrdinals(inOrder) }
}

/** Rows are read before accounts, so that a user who is imported between the two reads is not missed. */
async function newRowsOf(
  work: Work,
  ordinals: readonly number[],
): Promise<ReadonlySet<number> | 'proof'> {
  const inBatch = new Set(ordinals)
  const withRow = new Set<number>()
  for await (const row of work.core.rows(undefined, { signal: work.signal })) {
    const ordinal = ownRowOf(work, row)
    if (ordinal === undefined || !inBatch.has(ordinal)) continue
    if (work.ledger.state.lostOnce[ordinal] === 0) return 'proof'
    withRow.add(ordinal)
  }
  return withRow
}

interface AccountSearch {
  readonly ordinals: readonly number[]
  /** Users that have a row. */
  readonly existing: ReadonlySet<number>
  /** Looks up all users. Otherwise the first user without a row and an account ends the look-ups. */
  readonly isThorough: boolean
}

/** Returns the ordinals of the users that have a row or an account. */
async function addAccounts(
  { core, survey, settings, signal }: Work,
  { ordinals, existing, isThorough }: AccountSearch,
): Promise<ReadonlySet<number>> {
  const all = new Set(existing)
  const others = ordinals.filter((ordinal) => !existing.has(ordinal))
  let someoneHasNone = false
  await forEachAtOnce(survey.externalIdsOf(others), settings.lookUps, async (identity) => {
    if (someoneHasNone && !isThorough) return
    const coreUserId = await core.coreIdOf(identity.externalUserId, { signal })
    if (coreUserId === undefined) someoneHasNone = true
    else all.add(identity.ordinal)
  })
  return all
}

/**
 * A missing row counts as deleted immediately, because nothing else removes failed rows and the identities
 * of other rows are looked up.
 */
async function deletionResult(
  { core, signal }: Work,
  { rows }: SentDeletion,
  hasEnded: boolean,
): Promise<Resolved | undefined> {
  const left = new Set<string>()
  const sent = new Set(rows)
  if (rows.length > 0) {
    for await (const { id } of core.rows(undefined, { signal })) if (sent.has(id)) left.add(id)
  }
  if (left.size > 0 && !hasEnded) return undefined
  return { outcome: 'deleted', rows: rows.filter((row) => !left.has(row)) }
}

/** Number of consecutive calls without a reply that end a run. The next run continues. */
const MAX_LOST_IN_A_ROW = 3

/** Counts a call without a reply or an effect. @throws CoreError `error`, if there were too many in a row. */
export function countLostCall(work: Work, error: CoreError | undefined): void {
  if (error === undefined) return
  work.lostInARow += 1
  if (work.lostInARow >= MAX_LOST_IN_A_ROW) throw error
}
