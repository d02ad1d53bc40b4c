import { findHolder } from '../../account/conflicting-account.js'
import type { StagedRow } from '../../core/reply.js'
import { externalUserIdOf } from '../../record-validation/external-user-id.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import type { Entry, StalledRow } from '../state/journal-entry.js'
import { ownRowOf } from './identity-of-row.js'
import { chunks } from './login-conflicts.js'

/** A row of this run that waits at the core, with the result of its look-up. */
export interface ExaminedRow extends StalledRow {
  /** The core can never import it, because the identity has its account or another account has its login. */
  readonly isBlocking: boolean
}

/**
 * Looks up each row of this run that waits at the core, with one status or with any: whether its identity has
 * an account, and otherwise whether another account has one of its logins.
 */
export async function examineWaitingRows(
  work: Work,
  status: 'PROCESSING' | undefined,
  onRow: (row: ExaminedRow) => void,
): Promise<void> {
  await forEachAtOnce(waitingRows(work, status), work.settings.lookUps, async ({ row, of }) => {
    const { core, signal } = work
    const externalUserId = externalUserIdOf(row) ?? ''
    const hasAccount = (await core.coreIdOf(externalUserId, { signal })) !== undefined
    const heldBy = hasAccount ? undefined : await findHolder(core, row, { signal })
    onRow({
      row: row.id,
      of,
      externalUserId,
      status: row.status,
      ...(heldBy !== undefined && { heldBy }),
      isBlocking: hasAccount || heldBy !== undefined,
    })
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

/** Number of rows per journal entry. */
const CHUNK = 500

/** Journals that these rows are deleted next. Their identities are looked up after the deletion. */
export async function decideDeletion(
  { ledger }: Work,
  rows: readonly Pick<StalledRow, 'row' | 'of'>[],
): Promise<void> {
  const entries = chunks(rows, CHUNK).map(
    (chunk): Entry => ({ type: 'delete_decided', rows: chunk.map(({ row, of }) => [row, of]) }),
  )
  if (entries.length > 0) await ledger.write(...entries)
}

/** Journals the end of the wait, and the rows that still wait, in the order of the source. */
export async function endWait({ ledger }: Work, rows: readonly StalledRow[]): Promise<void> {
  const inOrder = rows.toSorted((one, other) => one.of - other.of)
  const entries = chunks(inOrder, CHUNK).map(
    (chunk): Entry => ({ type: 'rows_stalled', rows: chunk }),
  )
  await ledger.write(...entries, { type: 'waited' })
}
