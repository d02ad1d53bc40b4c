import { CoreError } from '../../core/core-error.js'
import type { Work } from '../migration-context.js'
import { inGrace } from './finish-in-flight.js'
import { resolveDeletion } from './resolve-deletion.js'

/** The core's limit of rows per call. */
const MAX_ROWS = 500

/** Deletes the rows of `toDelete` until none is left or a reply does not account for each row. */
export async function deleteRows(work: Work): Promise<void> {
  const { state } = work.ledger
  while (state.toDelete.size > 0 && !state.blocked) {
    work.signal.throwIfAborted()
    await deleteSome(work, [...firstOf(state.toDelete, MAX_ROWS)])
  }
}

async function deleteSome(work: Work, rows: readonly string[]): Promise<void> {
  const { ledger, core } = work
  await ledger.write({ type: 'delete_sent', rows: [...rows] })
  try {
    const lists = await inGrace(work.signal, (signal) => core.deleteRows(rows, { signal }))
    await account(work, rows, lists)
  } catch (error) {
    if (!(error instanceof CoreError)) throw error
    if (error.outcome === 'unknown') {
      return resolveDeletion(work, { givenUpAt: work.timing.elapsedMs(), error })
    }
    await ledger.write({ type: 'delete_refused' })
    throw error
  }
}

/**
 * Checks that each row is in `deletedIds` or `invalidIds`. Only a row that the core may have imported may be
 * in `invalidIds`; its identity is looked up next. Any other missing row was not deleted by this run.
 */
async function account(
  work: Work,
  rows: readonly string[],
  lists: { readonly deletedIds: readonly string[]; readonly invalidIds: readonly string[] },
): Promise<void> {
  const { toResolve } = work.ledger.state
  const asked = new Set(rows)
  const isGone = (row: string): boolean => asked.has(row) && toResolve.has(row)
  const gone = new Set([...lists.deletedIds, ...lists.invalidIds.filter(isGone)])
  const deleted = rows.filter((row) => gone.has(row))
  const open = rows.filter((row) => !gone.has(row))
  if (open.length === 0 && lists.invalidIds.every(isGone)) {
    await work.ledger.write({ type: 'deleted', rows: deleted })
    work.lostInARow = 0
  } else {
    await work.ledger.write({ type: 'delete_unaccounted', deleted, open })
  }
  work.tell('rows_deleted', { users: deleted.length })
}

function* firstOf<Item>(items: Iterable<Item>, most: number): Generator<Item> {
  let taken = 0
  for (const item of items) {
    if (taken === most) return
    taken += 1
    yield item
  }
}
