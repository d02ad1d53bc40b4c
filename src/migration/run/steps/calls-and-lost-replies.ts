import { CoreError } from '../../core/core-error.js'
import { currentRecords, findAtCore, type MigrationContext } from '../records.js'
import type { CallResult, EntryOf, ResultOf, SentCall } from '../state/journal-entry.js'

/**
 * Journals a call and sends it. Returns `undefined` if there was no reply and `resolveLostReply` has journaled
 * the result of the call.
 *
 * @throws CoreError if the core refused the call, or if too many calls got no reply.
 */
export async function sendCall<Reply>(
  ctx: MigrationContext,
  call: SentCall,
  send: (signal: AbortSignal) => Promise<Reply>,
): Promise<Reply | undefined> {
  await ctx.journaled.write({ type: 'sent', call })
  try {
    return await withGracePeriod(ctx.signal, send)
  } catch (error) {
    if (!(error instanceof CoreError)) throw error
    if (error.outcome === 'refused') {
      await ctx.journaled.write({
        type: 'settled',
        result: { outcome: 'refused', code: error.code },
      })
      throw error
    }
    await resolveLostReply(ctx, { abandonedAt: ctx.timing.elapsedMs(), error })
    return undefined
  }
}

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
    ctx.emit('reply_lost', { batch: call.batch, users: call.records.length })
  }
  const settledAt = abandonedAt + settings.settleSeconds * 1000
  await timing.sleep(Math.max(0, settledAt - timing.elapsedMs()), signal)
  const hadFullEffect =
    call.kind === 'stage' ? await resolveBatch(ctx, call) : await resolveDeletion(ctx, call)
  if (!hadFullEffect) countLostReply(ctx, error)
  else if (call.kind === 'stage') ctx.consecutiveLostReplies = 0
}

type CallOf<Kind extends SentCall['kind']> = Extract<SentCall, { kind: Kind }>

/** Looks for each user of a batch. Returns whether the core has all of them. Those that it lacks are sent again. */
async function resolveBatch(
  ctx: MigrationContext,
  { batch, records }: CallOf<'stage'>,
): Promise<boolean> {
  const sent = new Set(records)
  const { rows, accounts } = await findAtCore(
    ctx,
    currentRecords(ctx, (recordIndex) => sent.has(recordIndex)),
  )
  const existing = [...rows, ...accounts]
  const isStaged = existing.length === records.length
  const result: ResultOf<'staged' | 'absent'> = isStaged
    ? { outcome: 'staged', by: rows.length > 0 ? 'row' : 'accounts' }
    : { outcome: 'absent', existing }
  await ctx.journaled.write({ type: 'settled', result })
  ctx.emit('reply_resolved', { batch, users: isStaged ? records.length : 0 })
  return isStaged
}

/**
 * Looks for the rows of a deletion, and returns whether all are gone. A missing row counts as deleted, because only
 * this call removes failed rows, and the identities of all other rows are looked up next.
 */
async function resolveDeletion(
  ctx: MigrationContext,
  { rows }: CallOf<'delete'>,
): Promise<boolean> {
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

/** Journals that these rows are deleted next. Their identities are looked up after the deletion. */
export async function decideDeletion(
  { journaled }: Pick<MigrationContext, 'journaled'>,
  rows: readonly EntryOf<'row'>[],
): Promise<void> {
  if (rows.length > 0) await journaled.write(rows.map((row) => ({ ...row, as: 'unresolved' })))
}

/** The core's limit of rows per call. */
const MAX_ROWS = 500

/** Deletes the rows of `toDelete` until none is left or a reply does not account for each row. */
export async function deleteRows(ctx: MigrationContext): Promise<void> {
  const { core, journaled, signal } = ctx
  const { state } = journaled
  while (state.toDelete.size > 0 && !state.blocked) {
    signal.throwIfAborted()
    const rows = firstOf(state.toDelete, MAX_ROWS)
    const send = (late: AbortSignal) => core.deleteRows(rows, { signal: late })
    const reply = await sendCall(ctx, { kind: 'delete', rows }, send)
    if (reply === undefined) continue
    const result = checkDeletion(rows, reply, state.toResolve)
    await journaled.write({ type: 'settled', result })
    if (result.outcome === 'deleted') ctx.consecutiveLostReplies = 0
    const deleted = result.outcome === 'deleted' ? result.rows : result.deleted
    ctx.emit('rows_deleted', { users: deleted.length })
  }
}

/**
 * Checks that each row is in `deletedIds`, or, for a row of `toResolve`, in `invalidIds`: the core may have
 * imported it, and its identity is looked up next. Any other row in `invalidIds` was not deleted by this run.
 */
function checkDeletion(
  rows: readonly string[],
  reply: { readonly deletedIds: readonly string[]; readonly invalidIds: readonly string[] },
  toResolve: ReadonlySet<string>,
): Extract<CallResult, { outcome: 'deleted' | 'unaccounted' }> {
  const sent = new Set(rows)
  const isGone = (row: string): boolean => sent.has(row) && toResolve.has(row)
  const gone = new Set([...reply.deletedIds, ...reply.invalidIds.filter(isGone)])
  const deleted = rows.filter((row) => gone.has(row))
  const open = rows.filter((row) => !gone.has(row))
  return open.length === 0 && reply.invalidIds.every(isGone)
    ? { outcome: 'deleted', rows: deleted }
    : { outcome: 'unaccounted', deleted, open }
}

function firstOf<Item>(items: Iterable<Item>, most: number): Item[] {
  const first: Item[] = []
  for (const item of items) {
    if (first.length === most) break
    first.push(item)
  }
  return first
}

/** How long an aborted run waits for a write that is in progress, in milliseconds. */
const GRACE_PERIOD_MS = 5000

/**
 * Performs a write with a signal that aborts `GRACE_PERIOD_MS` after `signal`. If the reply arrives meanwhile,
 * the next run need not find out whether the call took effect.
 */
export async function withGracePeriod<Result>(
  signal: AbortSignal,
  write: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const late = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const startTimer = (): void => {
    timer = setTimeout(() => late.abort(signal.reason), GRACE_PERIOD_MS)
  }
  signal.throwIfAborted()
  signal.addEventListener('abort', startTimer, { once: true })
  try {
    return await write(late.signal)
  } finally {
    signal.removeEventListener('abort', startTimer)
    clearTimeout(timer)
  }
}
