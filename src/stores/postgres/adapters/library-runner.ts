import {
  awaitAnswer,
  noAnswer,
  type Row,
  type Statement,
  type StatementLimits,
  type TransactionLimits,
  type TransactionRunner,
} from '../runner.js'
import { READ_ONLY_SQL_TRANSACTION, sqlStateOf } from '../sql-state.js'

/** A library that has its own transaction function. */
interface Library<Tx> {
  /** Opens a transaction with the library's own function. */
  transaction(limits: TransactionLimits): Open<Tx>
  query(tx: Tx, statement: Statement): PromiseLike<readonly Row[]>
  /** Runs one statement outside the transaction, on a separate connection. */
  queryAlone(single: SingleStatement): Promise<readonly Row[]>
}

interface SingleStatement {
  readonly statement: Statement
  readonly limits: StatementLimits
}

/** The limits of a single statement for which the caller sets none. */
const DEFAULT_LIMITS: StatementLimits = { acquireMs: 1000, statementMs: 30_000 }

/**
 * How long a caller waits for a rollback, in ms. The rollback waits for the statement before it, which
 * may hang and keeps its locks until the connection is destroyed.
 */
const ROLLBACK_MS = 1000

/** Runs transactions by a library: acquires in time, runs, limits the wait for the end, and rolls back. */
export function libraryRunner<Tx>(library: Library<Tx>): TransactionRunner<Tx> {
  /** Transactions whose last statement through this runner succeeded, so that they are not aborted. */
  const alive = new WeakSet<WeakKey>()

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

  return {
    transaction,
    async query(tx, text, values, limits = DEFAULT_LIMITS) {
      const statement = { text, values }
      if (tx === undefined) return library.queryAlone({ statement, limits })
      alive.delete(tx as WeakKey)
      const rows = await library.query(tx, statement)
      alive.add(tx as WeakKey)
      return rows
    },
  }
}

/** Runs a statement on a connection that `open` acquires. */
export function queryOn<Connection>(
  open: Open<Connection>,
  query: (connection: Connection, statement: Statement) => PromiseLike<readonly Row[]>,
  { statement, limits: { acquireMs, statementMs } }: SingleStatement,
): Promise<readonly Row[]> {
  return openInTime(open, acquireMs, async (connection, limitWait) => {
    limitWait(statementMs, () => noAnswer(statementMs))
    try {
      return await query(connection, statement)
    } catch (error) {
      await dropIfReadOnly(error, (text) => query(connection, { text, values: [] }))
      throw error
    }
  })
}

/** What a library and the caller know of an opening. */
export interface Opening {
  /** Whether the caller no longer waits. */
  isAbandoned: boolean
  /** Set by a library that can destroy a connection: called when the caller stops waiting. */
  destroy: () => void
}

/** Passes a connection or a transaction to `use`, and releases it when `use` has settled. */
export type Open<Handle> = <R>(use: (handle: Handle) => Promise<R>, opening: Opening) => Promise<R>

/** Limits the rest of the caller's wait to `ms`; after that it is rejected with what `reason` returns. */
type LimitWait = (ms: number, reason: () => unknown) => void

/**
 * Waits for `open` no longer than `acquireMs`, whatever the library's pool does: if the connection comes
 * later, `use` is not called. After a limit the library continues alone, unless it can destroy the connection.
 */
function openInTime<Handle, R>(
  open: Open<Handle>,
  acquireMs: number,
  use: (handle: Handle, limitWait: LimitWait) => Promise<R>,
): Promise<R> {
  return new Promise((resolve, reject) => {
    let isUsed = false
    const opening: Opening = { isAbandoned: false, destroy: () => {} }
    const abandonAfter = (ms: number, reason: () => unknown): NodeJS.Timeout =>
      setTimeout(() => {
        opening.isAbandoned = true
        reject(reason())
        opening.destroy()
      }, ms).unref()
    const noConnection = (): Error =>
      new Error(`No connection to Postgres came within ${acquireMs} ms.`)
    let timer = abandonAfter(acquireMs, noConnection)
    const limitWait: LimitWait = (ms, reason) => {
      clearTimeout(timer)
      timer = abandonAfter(ms, reason)
    }
    open(async (handle) => {
      if (isUsed) throw new Error('The library has called back a second time')
      if (opening.isAbandoned) throw noConnection()
      isUsed = true
      clearTimeout(timer)
      return await use(handle, limitWait)
    }, opening)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer))
  })
}

/** A single text, because a library may give the connection to another request after the rollback. */
const TERMINATE = 'rollback; select pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())'

/**
 * Makes a server that is a standby, or has become read-only, end the connection on which it answered with this
 * error, so that the library's pool drops it. The libraries have no other way in common. Never rejects.
 */
async function dropIfReadOnly(
  error: unknown,
  send: (text: string) => PromiseLike<unknown>,
): Promise<void> {
  if (sqlStateOf(error) !== READ_ONLY_SQL_TRANSACTION) return
  const ended = (async () => send(TERMINATE))()
  await awaitAnswer(ROLLBACK_MS, ended).catch(() => {})
}
