import type { MigrationContext } from '../migration-context.js'
import type { CallResult, EntryOf } from '../state/journal-entry.js'
import { sendCall } from './send-call.js'

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
