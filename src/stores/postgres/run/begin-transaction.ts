import type { RecordIds } from '../sql/record-ids.js'
import type { Opened } from '../sql/statements.js'
import type { Place } from '../store-context.js'

/**
 * The server ends what this process has not ended: later, because a connection that it ends under a rollback
 * may go back to the pool as a good one.
 */
const SERVER_GRACE_MS = 500

export interface Opening {
  readonly ids: RecordIds
  /** Whether the server is to look whether its client is still there. */
  readonly checksConnection: boolean
}

/** Bounds the transaction, tries the locks and looks for the record, in this order. */
export async function open<Tx>(
  { runner, statements, limits }: Place<Tx>,
  { ids, checksConnection }: Opening,
  tx: Tx,
): Promise<Opened> {
  const options = { transactionMs: limits.transactionMs + SERVER_GRACE_MS, checksConnection }
  const statement = statements.open(ids, options)
  if (runner.batch === undefined) {
    return statements.readOpened(await runner.query(tx, statement.text, statement.values))
  }
  // A client that can sends it together with its `begin`.
  const [rows = []] = await runner.batch(tx, [statement])
  return statements.readOpened(rows)
}

/**
 * The fence of a run.
 *
 * @throws TypeError when it is no safe integer.
 */
export function fenceOf(opened: Opened): number {
  const fence = opened.lock === 'taken' ? Number(opened.fence) : Number.NaN
  if (Number.isSafeInteger(fence)) return fence
  throw new TypeError('the id of a transaction must be a safe integer')
}
