import type { CoreError } from '../../core/core-error.js'
import type { Work } from '../migration-context.js'
import { countLostCall } from './lost-calls.js'

/**
 * Determines from the list of rows whether a deletion without a reply took effect. A missing row counts as
 * deleted immediately, because nothing else removes failed rows and the identities of other rows are looked
 * up. A row that still exists counts as not deleted only after `settleSeconds`, when the core is assumed to
 * have ended the call.
 */
export async function resolveDeletion(
  work: Work,
  { givenUpAt, error }: { readonly givenUpAt: number; readonly error?: CoreError },
): Promise<void> {
  const rows = work.ledger.state.deleting ?? []
  const settledAt = givenUpAt + work.settings.settleSeconds * 1000
  let settled = work.timing.elapsedMs() >= settledAt
  let left = await rowsLeft(work, rows)
  while (left.size > 0 && !settled) {
    await work.timing.sleep(Math.max(0, settledAt - work.timing.elapsedMs()), work.signal)
    settled = true
    left = await rowsLeft(work, rows)
  }
  const deleted = rows.filter((row) => !left.has(row))
  await work.ledger.write({ type: 'deleted', rows: deleted })
  work.tell('rows_deleted', { users: deleted.length })
  if (left.size > 0) countLostCall(work, error)
}

async function rowsLeft(
  { core, signal }: Work,
  rows: readonly string[],
): Promise<ReadonlySet<string>> {
  const asked = new Set(rows)
  const left = new Set<string>()
  if (rows.length === 0) return left
  for await (const row of core.rows(undefined, { signal })) if (asked.has(row.id)) left.add(row.id)
  return left
}
