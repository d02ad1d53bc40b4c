import { findHolder } from '../../account/conflicting-account.js'
import type { StagedRow } from '../../core/reply.js'
import { externalUserIdOf } from '../../record-validation/external-user-id.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import type { EntryOf } from '../state/journal-entry.js'
import { ownRowOf } from './records.js'

type Row = EntryOf<'row'>

/**
 * Looks up each row of this run that waits at the core, with one status or with any: whether its identity has
 * an account, and otherwise whether another account has one of its logins. In both cases the core can never
 * import the row, and `isBlocking` is true.
 */
export async function examineWaitingRows(
  work: Work,
  status: 'PROCESSING' | undefined,
  onRow: (row: Row, isBlocking: boolean) => void,
): Promise<void> {
  await forEachAtOnce(waitingRows(work, status), work.settings.lookUps, async ({ row, of }) => {
    const { core, signal } = work
    const externalUserId = externalUserIdOf(row) ?? ''
    const hasAccount = (await core.coreIdOf(externalUserId, { signal })) !== undefined
    const heldBy = hasAccount ? undefined : await findHolder(core, row, { signal })
    const entry: Row = {
      type: 'row',
      row: row.id,
      record: of,
      line: work.survey.lineOf(of),
      externalUserId,
      as: 'stalled',
      status: row.status,
      ...(heldBy !== undefined && { heldBy }),
    }
    onRow(entry, hasAccount || heldBy !== undefined)
  })
}

interface WaitingRow {
  readonly row: StagedRow
  readonly of: number
}

async function* waitingRows(
  work: Work,
  status: 'PROCESSING' | undefined,
): AsyncGenerator<WaitingRow> {
  for await (const row of work.core.rows(status, { signal: work.signal })) {
    if (row.status === 'FAILED') continue
    const of = ownRowOf(work, row)
    if (of !== undefined) yield { row, of }
  }
}

/** Returns the number of rows of this run that wait at the core. */
export async function countWaitingRows(work: Work): Promise<number> {
  let count = 0
  for await (const _ of waitingRows(work, undefined)) count += 1
  return count
}

/** Journals that these rows are deleted next. Their identities are looked up after the deletion. */
export async function decideDeletion({ ledger }: Work, rows: readonly Row[]): Promise<void> {
  if (rows.length > 0) await ledger.write(...rows.map((row): Row => ({ ...row, as: 'unresolved' })))
}

/** Journals the end of the wait, and the rows that still wait, in the order of the source. */
export async function endWait({ ledger }: Work, rows: readonly Row[]): Promise<void> {
  const inOrder = rows.toSorted((one, other) => one.record - other.record)
  await ledger.write(...inOrder, { type: 'rest', phase: 'collect' })
}
