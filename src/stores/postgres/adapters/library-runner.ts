import {
  awaitAnswer,
  noAnswer,
  type OpeningLimits,
  type Row,
  type Statement,
  type StatementLimits,
  type TransactionRunner,
} from '../runner.js'
import { READ_ONLY_SQL_TRANSACTION, sqlStateOf } from '../sql-state.js'

/** A library that has its own transaction function. */
interface Library<Tx> {
  /** Opens a transaction with the library's own function. */
  transaction(limits: OpeningLimits): Open<Tx>
  /** Acquires a connection for a statement in no transaction; without it, the statement has one of its own. */
  readonly connection?: Open<Tx>
  query(tx: Tx, statement: Statement): PromiseLike<readonly Row[]>
}

/** Passes a connection or a transaction to `use`, and releases it when `use` has settled. */
export type Open<Tx> = <R>(use: (tx: Tx) => Promise<R>, opening: Opening) => Promise<R>

/** What a library and the caller know of an opening. */
export interface Opening {
  /** Whether the caller no longer waits. */
  isAbandoned: boolean
  /** Set by a library that can destroy a connection: called when the caller stops waiting. */
  destroy: () => void
}

/** Limits the rest of the caller's wait to `ms`; after that it is rejected with what `reason` returns. */
type LimitWait = (ms: number, reason: () => unknown) => void

/** The limits of a single statement for which the caller sets none. */
const DEFAULT_LIMITS: StatementLimits = { acquireMs: 1000, statementMs: 30_000 }

/**
 * How long a caller waits for a rollback, in ms. The rollback waits for the statement before it, which
 * may hang and keeps its locks until the connection is destroyed.
 */
const ROLLBACK_MS = 1000

/** A single text, because a library may give the connection to another request after the rollback. */
const TERMINATE = 'rollback; select pg_catalog.pg_terminate_backend(pg_catalog.pg_backend_pid())'

/** Runs transactions by a library: acquires in time, runs, limits the wait for the end, and rolls back. */
export function libraryRunner<Tx>(library: Library<Tx>): TransactionRunner<Tx> {
  /** Transactions whose last statement through this runner failed, so that they may be aborted. */
  const doubtful = new WeakSet<WeakKey>()

  async function query(tx: Tx, statement: Statement): Promise<readonly Row[]> {
    try {
      const rows = await library.query(tx, statement)
      doubtful.delete(tx as WeakKey)
      return rows
    } catch (error) {
      doubtful.add(tx as WeakKey)
      throw error
    }
  }

  /** Sends a text of which nothing is read. Async, so that a library that throws fails like one that rejects. */
  const send = async (tx: Tx, text: string): Promise<unknown> =>
    library.query(tx, { text, values: [] })

  /**
   * Waits for `open` no longer than `acquireMs`, whatever the library's pool does: if the connection comes
   * later, `use` is not called. After a limit the library continues alone, unless it can destroy the connection.
   */
  const openInTime = <R>(
    open: Open<Tx>,
    acquireMs: number,
    use: (tx: Tx, limitWait: LimitWait) => Promise<R>,
  ): Promise<R> =>
    new Promise((resolve, reject) => {
      const opening: Opening = { isAbandoned: false, destroy: () => {} }
      let failure: { readonly error: unknown } | undefined
      let timer: NodeJS.Timeout | undefined
      const limitWait: LimitWait = (ms, reason) => {
        clearTimeout(timer)
        timer = setTimeout(() => {
          opening.isAbandoned = true
          reject(reason())
          opening.destroy()
        }, ms).unref()
      }
      const noConnection = (): Error =>
        new Error(`No connection to Postgres came within ${acquireMs} ms.`)
      limitWait(acquireMs, noConnection)
      open(async (tx) => {
        if (opening.isAbandoned) throw noConnection()
        clearTimeout(timer)
        try {
          return await use(tx, limitWait)
        } catch (error) {
          failure = { error }
          limitWait(ROLLBACK_MS, () => error)
          // A standby, or a server that has become read-only, ends its connection, so that the library's pool drops
          // it. The libraries have no other way in common.
          if (sqlStateOf(error) === READ_ONLY_SQL_TRANSACTION)
            await awaitAnswer(ROLLBACK_MS, send(tx, TERMINATE)).catch(() => {})
          throw error
        }
      }, opening)
        // The error of a failed rollback must not hide the first one.
        .then(resolve, (error) => reject(failure ? failure.error : error))
        .finally(() => clearTimeout(timer))
    })

  return {
    transaction(work, limits) {
      const { acquireMs, transactionMs } = limits
      const endBy = performance.now() + acquireMs + transactionMs
      return openInTime(library.transaction(limits), acquireMs, async (tx, limitWait) => {
        const result = await work(tx)
        const commitMs = Math.max(ROLLBACK_MS, Math.ceil(endBy - performance.now()))
        limitWait(commitMs, () => noAnswer(commitMs))
        // Postgres answers COMMIT in an aborted transaction with ROLLBACK, which libraries take for success.
        if (doubtful.has(tx as WeakKey)) await send(tx, 'select 1')
        return result
      })
    },
    async query(tx, text, values, { acquireMs, statementMs } = DEFAULT_LIMITS) {
      if (tx !== undefined) return query(tx, { text, values })
      const open =
        library.connection ?? library.transaction({ acquireMs, transactionMs: statementMs })
      return openInTime(open, acquireMs, (connection, limitWait) => {
        limitWait(statementMs, () => noAnswer(statementMs))
        return query(connection, { text, values })
      })
    },
  }
}
