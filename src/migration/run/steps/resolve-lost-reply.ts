import type { CoreError } from '../../core/core-error.js'
import type { MigrationContext } from '../migration-context.js'
import type { ResultOf } from '../state/journal-entry.js'
import { writeRecordIndexes } from '../state/record-indexes.js'
import { identityAt, type SentBatch, type SentDeletion } from '../state/run-state.js'
import { findAccounts, unrecordedRows } from './records.js'

interface LostReply {
  /** When the call was abandoned, from `timing.elapsedMs`. */
  readonly abandonedAt: number
  /** The error that ends the run if too many calls get no reply. Missing if an earlier process sent the call. */
  readonly error?: CoreError
}

/**
 * Determines whether a call without a reply took effect. Only after `settleSeconds` is the core assumed to
 * have ended the call, so before that nothing counts as proof that it had no effect.
 */
export async function resolveLostReply(
  ctx: MigrationContext,
  { abandonedAt, error }: LostReply,
): Promise<void> {
  const { timing, settings, journaled } = ctx
  const call = journaled.state.unanswered
  if (call === undefined) return
  if (error !== undefined && call.kind === 'stage') {
    ctx.emit('reply_lost', { batch: call.batch, users: call.recordIndexes.length })
  }
  const settledAt = abandonedAt + settings.settleSeconds * 1000
  let hasEnded = timing.elapsedMs() >= settledAt
  let result = await findResult(ctx, call, hasEnded)
  while (result === undefined) {
    await timing.sleep(Math.max(0, settledAt - timing.elapsedMs()), ctx.signal)
    hasEnded = true
    result = await findResult(ctx, call, hasEnded)
  }
  await journaled.write({ type: 'settled', result })
  if (result.outcome === 'staged') ctx.consecutiveLostReplies = 0
  if (call.kind === 'stage') {
    const users = result.outcome === 'staged' ? call.recordIndexes.length : 0
    ctx.emit('reply_resolved', { batch: call.batch, users })
  }
  if (result.outcome === 'deleted') ctx.emit('rows_deleted', { users: result.rows.length })
  const wasIncomplete =
    result.outcome === 'absent' ||
    (call.kind === 'delete' &&
      result.outcome === 'deleted' &&
      result.rows.length < call.rows.length)
  if (wasIncomplete) countLostReply(ctx, error)
}

type Resolved = ResultOf<'staged' | 'absent' | 'deleted'>

/** Returns `undefined` if the call may still take effect. */
const findResult = (
  ctx: MigrationContext,
  call: SentBatch | SentDeletion,
  hasEnded: boolean,
): Promise<Resolved | undefined> =>
  call.kind === 'stage' ? batchResult(ctx, call, hasEnded) : deletionResult(ctx, call, hasEnded)

/**
 * A call stages all of its users or none, and a staged user has a row or an account. So one new row proves
 * that all were staged, unless an earlier call without a reply may have staged it. A user with neither
 * proves that none was staged.
 */
async function batchResult(
  ctx: MigrationContext,
  { recordIndexes }: SentBatch,
  hasEnded: boolean,
): Promise<Resolved | undefined> {
  const existing = await newRowsOf(ctx, recordIndexes)
  if (existing === 'proof') return { outcome: 'staged', by: 'row' }
  const others = recordIndexes.filter((recordIndex) => !existing.has(recordIndex))
  const identities = ctx.sourceIndex.externalIdsOf(others, ctx.signal)
  const accounts = await findAccounts(ctx, identities, { untilOneHasNone: !hasEnded })
  if (accounts.size === others.length) return { outcome: 'staged', by: 'accounts' }
  if (!hasEnded) return undefined
  const isThere = (recordIndex: number) => existing.has(recordIndex) || accounts.has(recordIndex)
  return { outcome: 'absent', existing: writeRecordIndexes(recordIndexes.filter(isThere)) }
}

/**
 * Returns the users of the batch that have a row, or `proof` if only this call can have staged a row. Rows are read
 * before accounts, so that a user who is imported between the two reads is not missed.
 */
async function newRowsOf(
  ctx: MigrationContext,
  recordIndexes: readonly number[],
): Promise<ReadonlySet<number> | 'proof'> {
  const inBatch = new Set(recordIndexes)
  const withRow = new Set<number>()
  for await (const { recordIndex } of unrecordedRows(ctx)) {
    if (!inBatch.has(recordIndex)) continue
    if (!identityAt(ctx.journaled.state, recordIndex).hadLostReply) return 'proof'
    withRow.add(recordIndex)
  }
  return withRow
}

/**
 * A missing row counts as deleted immediately, because only this call removes failed rows, and the identities
 * of all other rows are looked up next.
 */
async function deletionResult(
  { core, signal }: MigrationContext,
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
const MAX_CONSECUTIVE_LOST_REPLIES = 3

/** Counts a call without a reply and full effect. @throws CoreError `error`, if there were too many in a row. */
export function countLostReply(ctx: MigrationContext, error: CoreError | undefined): void {
  if (error === undefined) return
  ctx.consecutiveLostReplies += 1
  if (ctx.consecutiveLostReplies >= MAX_CONSECUTIVE_LOST_REPLIES) throw error
}
