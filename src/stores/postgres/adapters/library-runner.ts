import {
  noAnswer,
  noConnection,
  ROLLBACK_MS,
  type Row,
  type Statement,
  type StatementLimits,
  type TransactionLimits,
  type TransactionRunner,
} from '../runner.js'
import { dropIfReadOnly } from './read-only.js'

/** A library that has its own transaction function. */
interface Library<Tx> {
  /** Opens a transaction with the library's own function. */
  transaction(limits: TransactionLimits): Open<Tx>
  query(tx: Tx, statement: Statement): Promise<readonly Row[]>
  /** Runs one statement outside the transaction, on a separate connection. */
  queryAlone(single: SingleStatement): Promise<readonly Row[]>
  /** Sends several statements in one round trip. */
  batch?(tx: Tx, statements: readonly Statement[]): Promise<readonly (readonly Row[])[]>
}

interface SingleStatement {
  readonly statement: Statement
  /** Without limits it may take as long as the library lets it. */
  readonly limits: StatementLimits | undefined
}

/** Runs transactions by a library: acquires in time, runs, limits the wait for the end, and rolls back. */
export function libraryRunner<Tx>(library: Library<Tx>): TransactionRunner<Tx> {
  /** Transactions whose last statement through this runner succeeded, so that they are not aborted. */
  const alive = new WeakSet<WeakKey>()

  async function track<R>(tx: Tx, send: () => Promise<R>): Promise<R> {
    alive.delete(tx as WeakKey)
    const result = await send()
    alive.add(tx as WeakKey)
    return result
  }

  async function transaction<R>(
    work: (tx: Tx) => Promise<R>,
    limits: TransactionLimits,
  ): Promise<R> {
    let failure: { readonly error: unknown } | undefined
    const endBy = performance.now() + limits.acquireMs + limits.transactionMs
    const open = library.transaction(limits)
    return openInTime(open, limits.acquireMs, async (tx, limitWait) => {
      try {
        const result = await work(tx)
        const commitMs = Math.max(ROLLBACK_MS, Math.ceil(endBy - performance.now()))
        limitWait(commitMs, () => noAnswer(commitMs))
        // Postgres answers COMMIT in an aborted transaction with ROLLBACK, which libraries take for success.
        if (!alive.has(tx as WeakKey)) await library.query(tx, { text: 'select 1', values: [] })
        return result
      } catch (error) {
        failure = { error }
        limitWait(ROLLBACK_MS, () => error)
        await dropIfReadOnly(error, (text) => library.query(tx, { text, values: [] }))
        throw error
      }
    }).catch((error: unknown) => {
      // The error of a failed rollback must not hide the first one.
      throw failure ? failure.error : error
    })
  }

  const { batch } = library
  return {
    transaction,
    async query(tx, text, values, limits) {
      if (tx === undefined) return library.queryAlone({ statement: { text, values }, limits })
      return track(tx, () => library.query(tx, { text, values }))
    },
    ...(batch && { batch: (tx, statements) => track(tx, () => batch(tx, statements)) }),
  }
}

/** Runs a statement on a connection that `open` acquires. */
export function queryOn<Connection>(
  open: Open<Connection>,
  query: (connection: Connection, statement: Statement) => Promise<readonly Row[]>,
  { statement, limits }: SingleStatement,
): Promise<readonly Row[]> {
  const send = async (connection: Connection): Promise<readonly Row[]> => {
    try {
      return await query(connection, statement)
    } catch (error) {
      await dropIfReadOnly(error, (text) => query(connection, { text, values: [] }))
      throw error
    }
  }
  if (!limits) return open(send)
  return openInTime(open, limits.acquireMs, (connection, limitWait) => {
    limitWait(limits.statementMs, () => noAnswer(limits.statementMs))
    return send(connection)
  })
}

/**
 * Passes a connection or a transaction to `use`, and releases it when `use` has settled. When `abandoned`
 * aborts, the caller no longer waits, and the library should destroy the connection if it can.
 */
export type Open<Handle> = <R>(
  use: (handle: Handle) => Promise<R>,
  abandoned?: AbortSignal,
) => Promise<R>

/** Limits the rest of the caller's wait to `ms`; after that it is rejected with what `reason` returns. */
type LimitWait = (ms: number, reason: () => unknown) => void

/**
 * Waits for `open` no longer than `acquireMs`, whatever the library's pool does: if the connection comes
 * later, `use` is not called. After a limit the library continues alone, unless it reacts to the signal.
 */
function openInTime<Handle, R>(
  open: Open<Handle>,
  acquireMs: number,
  use: (handle: Handle, limitWait: LimitWait) => Promise<R>,
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
    const limitWait: LimitWait = (ms, reason) => {
      clearTimeout(timer)
      timer = setTimeout(() => abandon(reason()), ms).unref()
    }
    open(async (handle) => {
      if (state === 'too late') throw noConnection(acquireMs)
      if (state === 'used') throw new Error('The library has called back a second time')
      state = 'used'
      clearTimeout(timer)
      return await use(handle, limitWait)
    }, abandoned.signal)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}
