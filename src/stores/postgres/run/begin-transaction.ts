import type { RecordIds } from '../sql/record-ids.js'
import type { Opened } from '../sql/statements.js'
import type { Place } from '../store-context.js'

/**
 * The server's time limit is later than the store's, because a connection that the server ends during a
 * rollback may return to the pool as a good one.
 */
const SERVER_GRACE_MS = 500

export interface Opening {
  readonly ids: RecordIds
  /** Whether the server checks during a statement that its client is still connected. */
  readonly checksConnection: boolean
}

/** Sets the limits of the transaction, tries the lock and looks for the record, in this order. */
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
  // A client with `batch` can send the statement together with its `begin`.
  const [rows = []] = await runner.batch(tx, [statement])
  return statements.readOpened(rows)
}

/**
 * Returns the fence of a run.
 *
 * @throws TypeError if it is not a safe integer.
 */
export function fenceOf(opened: Opened): number {
  const fence = opened.lock === 'taken' ? Number(opened.fence) : Number.NaN
  if (Number.isSafeInteger(fence)) return fence
  throw new TypeError('the id of a transaction must be a safe integer')
}
