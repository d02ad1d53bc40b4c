import {
  awaitAnswer,
  DEFAULT_LIMITS,
  type Row,
  type Statement,
  type StatementLimits,
  type TransactionLimits,
  type TransactionRunner,
} from '../runner.js'
import { warnOfSilentConnections } from '../silent-connections.js'
import { isEndedByHandler } from '../sql/record-statements.js'
import { rowsOf } from './postgres-js-rows.js'
import {
  begin,
  commit,
  endEmpty,
  hasDisconnected,
  type OpenTransaction,
  type PostgresJsLike,
  rejectOnDisconnect,
  rollBack,
  unprepared,
} from './postgres-js-transaction.js'
import { dropIfReadOnly } from './read-only.js'

// Fails, with a cause, if an error that the handler swallowed aborted the transaction: its commit would roll back.
const PROBE: Statement = { text: 'select 1', values: [] }

/**
 * Runs transactions on postgres.js 3.4 by `sql.begin`; `transactionOf` returns the object that this passes
 * to its callback. postgres.js keeps a connection whose reply never comes: give it the option `socket`.
 *
 * @throws TypeError if `sql` is not the result of `postgres()`.
 *
 * @example
 * ```ts
 * import { fromPostgresJs, postgresStore } from 'express-service-auth/postgres'
 * import postgres from 'postgres'
 *
 * const sql = postgres(process.env['DATABASE_URL'] ?? '', { fetch_types: false })
 * const store = postgresStore(fromPostgresJs(sql))
 * await store.check()
 * store.close()
 * await sql.end()
 * ```
 */
export function fromPostgresJs<T>(sql: PostgresJsLike<T>): TransactionRunner<T> {
  if (!isPostgresJs(sql)) {
    throw new TypeError('fromPostgresJs: expected what postgres() returns')
  }
  const running = new Map<object, OpenTransaction<T>>()
  const nameTransform = sql.options.transform.column.from

  const openOf = (tx: T): OpenTransaction<T> => {
    const open = running.get(tx as object)
    if (open) return open
    throw new Error('fromPostgresJs: the transaction has ended, or its connection was lost')
  }

  /** A backend has only one transaction, so another open transaction on that backend must have ended. */
  function claim(open: OpenTransaction<T>, backend: number): void {
    open.backend = backend
    for (const other of running.values()) {
      if (other !== open && other.backend === backend) other.handover.report('other_request')
    }
  }

  const send = async (tx: T, { text, values }: Statement): Promise<Row[]> => {
    const open = openOf(tx)
    const nullable = values.map((value) => value ?? null)
    try {
      const answered = Promise.resolve(unprepared(tx, text, nullable).raw())
      const result = await Promise.race([answered, open.handover.rejection])
      if (open.backend === undefined) claim(open, result.state.pid)
      return rowsOf(result, text, nameTransform)
    } catch (error) {
      if (open.handover.cause === undefined && isEndedByHandler(error)) {
        open.handover.report('failed_statement')
      }
      throw error
    }
  }

  const sendAll = (tx: T, statements: readonly Statement[]): Promise<Row[]>[] =>
    statements.map((each) => send(tx, each))

  async function transaction<R>(
    work: (tx: T) => Promise<R>,
    limits: TransactionLimits,
  ): Promise<R> {
    const open = await begin(sql, limits)
    running.set(open.tx as object, open)
    try {
      const lost = open.ended.catch(async (error: unknown) => {
        if (open.committing === undefined) throw error
        // The library rejects with the error of any failed query, even if a savepoint has undone it.
        await open.committing
      })
      const result = await rejectOnDisconnect(work(open.tx), lost)
      await commitOnce(open, [])
      return result
    } catch (error) {
      await dropIfReadOnly(error, (text) => unprepared(open.tx, text))
      await rollBack(open, error)
      throw error
    } finally {
      running.delete(open.tx as object)
    }
  }

  /** Closes a transaction only once, even if it is called again. */
  function commitOnce(open: OpenTransaction<T>, statements: readonly Statement[]): Promise<void> {
    open.committing ??= (async () => {
      if (await hasDisconnected(open)) await open.ended
      const { commitMs, ended, handover } = open
      if (handover.cause !== undefined) await handover.rejection
      const sent = sendAll(open.tx, statements.length > 0 ? statements : [PROBE])
      const all = allDone<unknown>([...sent, commit(open)])
      const answered = rejectOnDisconnect(all, Promise.race([ended, handover.rejection]))
      await awaitAnswer(commitMs, answered)
      await endEmpty(open)
    })()
    return open.committing
  }

  /**
   * Runs the statement in a transaction, because outside one the library does not distinguish a queued
   * statement from a sent one.
   */
  function queryAlone(statement: Statement, limits: StatementLimits): Promise<readonly Row[]> {
    const { acquireMs, statementMs } = limits
    const timeout = { text: `set local statement_timeout = ${Math.ceil(statementMs)}`, values: [] }
    const work = async (tx: T): Promise<readonly Row[]> => {
      const answered = allDone(sendAll(tx, [timeout, statement]))
      const [, rows] = await awaitAnswer(statementMs, answered)
      return rows ?? []
    }
    return transaction(work, { acquireMs, transactionMs: statementMs })
  }

  const runner: TransactionRunner<T> = {
    transaction,
    async query(tx, text, values, limits = DEFAULT_LIMITS) {
      if (tx === undefined) return queryAlone({ text, values }, limits)
      const open = openOf(tx)
      if (await hasDisconnected(open)) await open.ended
      if (open.handover.cause !== undefined) await open.handover.rejection
      return rejectOnDisconnect(send(tx, { text, values }), open.ended)
    },
    batch: (tx, statements) => allDone(sendAll(tx, statements)),
    async commitWith(tx, statements) {
      await commitOnce(openOf(tx), statements)
    },
  }
  if (sql.options.socket) return runner
  return warnOfSilentConnections(runner, 'the option socket of postgres()')
}

/** The objects from `begin` and `reserve` have no `begin`. */
function isPostgresJs(sql: unknown): boolean {
  return typeof sql === 'function' && typeof Object(sql).begin === 'function'
}

/** Resolves to all values, or rejects with the first failure in order, once all promises have settled. */
async function allDone<T>(sent: readonly Promise<T>[]): Promise<T[]> {
  const settled = await Promise.allSettled(sent)
  return settled.map((each) => {
    if (each.status === 'rejected') throw each.reason
    return each.value
  })
}
