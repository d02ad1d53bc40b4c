import type { Row, StatementLimits, TransactionLimits, TransactionRunner } from '../runner.js'
import { type Open, openInTime } from './in-time.js'

/**
 * How long a caller waits for a rollback, and at least for a COMMIT, in ms. A rollback stands behind the
 * statement that hangs, and no such library lets a stranger cut its connection.
 */
const ENDING_MS = 1000

/** A library that has a transaction function of its own and runs a statement at a time. */
export interface Library<Tx, Connection> {
  /** The library's own transaction function. */
  transaction(limits: TransactionLimits): Open<Tx>
  /** One connection, in no transaction that outlasts the statement. */
  connection(limits: StatementLimits | undefined): Open<Connection>
  query(on: Tx | Connection, text: string, values: readonly unknown[]): Promise<readonly Row[]>
}

export function libraryRunner<Tx, Connection>(
  library: Library<Tx, Connection>,
): TransactionRunner<Tx> {
  /** Transactions whose last statement through this runner was answered: those are not dead. */
  const alive = new WeakSet<WeakKey>()

  async function queryIn(
    tx: Tx,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    alive.delete(tx as WeakKey)
    const rows = await library.query(tx, text, values)
    alive.add(tx as WeakKey)
    return rows
  }

  return {
    async transaction(work, limits) {
      let failure: { readonly error: unknown } | undefined
      const endBy = performance.now() + limits.acquireMs + limits.transactionMs
      const open = library.transaction(limits)
      const run = openInTime(open, limits.acquireMs, async (tx, bound) => {
        try {
          const result = await work(tx)
          bound(Math.max(ENDING_MS, endBy - performance.now()), new Error('No answer to COMMIT'))
          // Postgres answers the COMMIT of a dead transaction with ROLLBACK, and libraries call it done.
          if (!alive.has(tx as WeakKey)) await library.query(tx, 'select 1', [])
          return result
        } catch (error) {
          failure = { error }
          bound(ENDING_MS, error)
          throw error
        }
      })
      return run.catch((error: unknown) => {
        // A rollback that fails too must not hide why.
        throw failure ? failure.error : error
      })
    },
    async query(tx, text, values, limits) {
      if (tx !== undefined) return queryIn(tx, text, values)
      const open = library.connection(limits)
      if (!limits) return open((connection) => library.query(connection, text, values))
      return openInTime(open, limits.acquireMs, (connection, bound) => {
        bound(limits.statementMs, new Error(`No answer within ${limits.statementMs} ms`))
        return library.query(connection, text, values)
      })
    },
  }
}
