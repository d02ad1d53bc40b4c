import type { CoreError } from '../../core/core-error.js'
import type { MigrationContext } from '../migration-context.js'
import { type ResultOf, writeRecordIndexes } from '../state/journal-entry.js'
import type { SentBatch, SentDeletion } from '../state/run-state.js'
import { findAccounts, unrecordedRows } from './records.js'

interface LostReply {
  /** When the call was abandoned, from `timing.elapsedMs`. */
  readonly abandonedAt: number
  /** The error that ends the run if too many calls get no reply. Missing if an earlier process sent the call. */
  readonly error?: CoreError
}

/**
 * Determines whether a call without a reply took effect. Waits until `settleSeconds` have passed, because only then
 * is the core assumed to have ended the call.
 */
export async function resolveLostReply(
  ctx: MigrationContext,
  { abandonedAt, error }: LostReply,
): Promise<void> {
  const { timing, settings, journaled, signal } = ctx
  const call = journaled.state.unanswered
  if (call === undefined) return
  if (error !== undefined && call.kind === 'stage') {
    ctx.emit('reply_lost', { batch: call.batch, users: call.recordIndexes.length })
  }
  const settledAt = abandonedAt + settings.settleSeconds * 1000
  await timing.sleep(Math.max(0, settledAt - timing.elapsedMs()), signal)
  const hadFullEffect =
    call.kind === 'stage' ? await resolveBatch(ctx, call) : await resolveDeletion(ctx, call)
  if (!hadFullEffect) countLostReply(ctx, error)
  else if (call.kind === 'stage') ctx.consecutiveLostReplies = 0
}

/**
 * Looks for each user of a batch, first for its row and then for its account, so that a user who is imported between
 * the two reads is not missed. Returns whether the core has all of them. Those that it lacks are sent again.
 */
async function resolveBatch(
  ctx: MigrationContext,
  { batch, recordIndexes }: SentBatch,
): Promise<boolean> {
  const rows = new Set<number>()
  for await (const { recordIndex } of unrecordedRows(ctx)) rows.add(recordIndex)
  const others = recordIndexes.filter((recordIndex) => !rows.has(recordIndex))
  const accounts = await findAccounts(ctx, ctx.sourceIndex.externalIdsOf(others, ctx.signal))
  const isThere = (recordIndex: number) => rows.has(recordIndex) || accounts.has(recordIndex)
  const isStaged = accounts.size === others.length
  const by = others.length < recordIndexes.length ? 'row' : 'accounts'
  const result: ResultOf<'staged' | 'absent'> = isStaged
    ? { outcome: 'staged', by }
    : { outcome: 'absent', existing: writeRecordIndexes(recordIndexes.filter(isThere)) }
  await ctx.journaled.write({ type: 'settled', result })
  ctx.emit('reply_resolved', { batch, users: isStaged ? recordIndexes.length : 0 })
  return isStaged
}

/**
 * Looks for the rows of a deletion, and returns whether all are gone. A missing row counts as deleted, because only
 * this call removes failed rows, and the identities of all other rows are looked up next.
 */
async function resolveDeletion(ctx: MigrationContext, { rows }: SentDeletion): Promise<boolean> {
  const { core, journaled, signal } = ctx
  const left = new Set<string>()
  if (rows.length > 0) {
    const sent = new Set(rows)
    for await (const { id } of core.rows(undefined, { signal })) if (sent.has(id)) left.add(id)
  }
  const result = { outcome: 'deleted' as const, rows: rows.filter((row) => !left.has(row)) }
  await journaled.write({ type: 'settled', result })
  ctx.emit('rows_deleted', { users: result.rows.length })
  return left.size === 0
}

/** Number of consecutive calls without a reply that end a run. The next run continues. */
const MAX_CONSECUTIVE_LOST_REPLIES = 3

/** Counts a call without a reply and full effect. @throws CoreError `error`, if there were too many in a row. */
export function countLostReply(ctx: MigrationContext, error: CoreError | undefined): void {
  if (error === undefined) return
  ctx.consecutiveLostReplies += 1
  if (ctx.consecutiveLostReplies >= MAX_CONSECUTIVE_LOST_REPLIES) throw error
}
