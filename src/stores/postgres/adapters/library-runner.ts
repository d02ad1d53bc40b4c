import { noAnswer, noConnection, ROLLBACK_MS } from '../deadline.js'
import type { Row, StatementLimits, TransactionLimits, TransactionRunner } from '../runner.js'
import { dropIfReadOnly } from './read-only.js'

/** A library that has its own transaction function and runs one statement at a time. */
export interface Library<Tx, Connection> {
  /** Opens a transaction with the library's own function. */
  transaction(limits: TransactionLimits): Open<Tx>
  /** Opens one connection, without a transaction that outlasts the statement. */
  connection(limits: StatementLimits | undefined): Open<Connection>
  query(on: Tx | Connection, text: string, values: readonly unknown[]): Promise<readonly Row[]>
}

export function libraryRunner<Tx, Connection>(
  library: Library<Tx, Connection>,
): TransactionRunner<Tx> {
  /** Transactions whose last statement through this runner succeeded, so that they are not aborted. */
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

  async function queryAlone(
    connection: Connection,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[]> {
    try {
      return await library.query(connection, text, values)
    } catch (error) {
      await dropIfReadOnly(error, (statement) => library.query(connection, statement, []))
      throw error
    }
  }

  return {
    async transaction(work, limits) {
      let failure: { readonly error: unknown } | undefined
      const endBy = performance.now() + limits.acquireMs + limits.transactionMs
      const open = library.transaction(limits)
      const run = openInTime(open, limits.acquireMs, async (tx, bound) => {
        try {
          const result = await work(tx)
          const commitMs = Math.max(ROLLBACK_MS, Math.ceil(endBy - performance.now()))
          bound(commitMs, noAnswer(commitMs))
          // Postgres answers COMMIT in an aborted transaction with ROLLBACK, which libraries take for success.
          if (!alive.has(tx as WeakKey)) await library.query(tx, 'select 1', [])
          return result
        } catch (error) {
          failure = { error }
          bound(ROLLBACK_MS, error)
          await dropIfReadOnly(error, (statement) => library.query(tx, statement, []))
          throw error
        }
      })
      return run.catch((error: unknown) => {
        // The error of a failed rollback must not hide the first one.
        throw failure ? failure.error : error
      })
    },
    async query(tx, text, values, limits) {
      if (tx !== undefined) return queryIn(tx, text, values)
      const open = library.connection(limits)
      if (!limits) return open((connection) => queryAlone(connection, text, values))
      return openInTime(open, limits.acquireMs, (connection, bound) => {
        bound(limits.statementMs, noAnswer(limits.statementMs))
        return queryAlone(connection, text, values)
      })
    },
  }
}

/**
 * Passes a connection or a transaction to `use`, and releases it when `use` has settled. When `abandoned`
 * aborts, the caller no longer waits: a library that can destroys the connection.
 */
export type Open<Handle> = <R>(
  use: (handle: Handle) => Promise<R>,
  abandoned?: AbortSignal,
) => Promise<R>

/** Limits the rest of the caller's wait to `ms`; after that it is rejected with `reason`. */
type Bound = (ms: number, reason: unknown) => void

/**
 * Waits for `open` no longer than `acquireMs`, whatever the library's pool does: if its connection comes
 * later, `use` is not called. After a limit the library continues alone, unless it reacts to the signal.
 */
function openInTime<Handle, R>(
  open: Open<Handle>,
  acquireMs: number,
  use: (handle: Handle, bound: Bound) => Promise<R>,
): Promise<R> {
  return new Promise((resolve, reject) => {
    let state: 'waiting' | 'used' | 'too late' = 'waiting'
    const abandoned = new AbortController()
    const abandon = (reason: unknown): void => {
      reject(reason)
      abandoned.abort()
    }
    let timer = setTimeout(() => {
      state = 'too late'
      abandon(noConnection(acquireMs))
    }, acquireMs)
    timer.unref()
    const bound: Bound = (ms, reason) => {
      clearTimeout(timer)
      timer = setTimeout(abandon, ms, reason).unref()
    }
    open(async (handle) => {
      if (state === 'too late') throw noConnection(acquireMs)
      if (state === 'used') throw new Error('The library has called back a second time')
      state = 'used'
      clearTimeout(timer)
      return await use(handle, bound)
    }, abandoned.signal)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}
