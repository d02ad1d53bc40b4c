import type {
  Row,
  Statement,
  StatementLimits,
  TransactionLimits,
  TransactionRunner,
} from '../runner.js'
import { allDone, noAnswer, noConnection, within } from './bounded.js'
import { type NameTransform, type RawResult, rowsOf } from './postgres-js-rows.js'

/** `sql` of postgres.js 3.4; `T` is what `sql.begin` gives to its callback. */
export interface PostgresJsLike<T> {
  readonly options: { readonly transform: { readonly column: { readonly from: NameTransform } } }
  begin<R>(work: (sql: T) => R | Promise<R>): Promise<unknown>
  begin<R>(options: string, work: (sql: T) => R | Promise<R>): Promise<unknown>
}

interface Result extends RawResult {
  /** What the server says that it has done. */
  readonly command: string
}

interface RawQuery extends PromiseLike<Result> {
  raw(): RawQuery
}

interface TransactionLike {
  unsafe(text: string, values: readonly unknown[], options: { prepare: false }): RawQuery
}

/** A transaction that the library holds open until `end` is called. */
interface Open<T> {
  readonly tx: T
  /** The library sends its `commit`. */
  readonly end: () => void
  /** The library rolls back. */
  readonly fail: (reason: unknown) => void
  /** Settles when the library has ended the transaction, or lost its connection. */
  readonly ended: Promise<unknown>
  /** How long a server may take to answer the commit, before it is given up. */
  readonly commitMs: number
  closing?: Promise<void>
  /** The server has refused to commit, which ends a transaction. */
  isRefused?: boolean
}

/**
 * The library's own `commit` is a prepared statement, which the connection that pgbouncer gives it may not
 * know: then the transaction is rolled back, and the library takes that for done. This one commits, and
 * leaves the library an empty transaction to end.
 */
const COMMIT = 'commit and chain'

// Behind a statement that hangs the library waits for ever; the server ends that by its own time limit.
const ROLLBACK_MS = 1000

const DEFAULT_LIMITS: StatementLimits = { acquireMs: 1000, statementMs: 30_000 }

// Fails with a cause where an error that was swallowed makes the commit roll back.
const PROBE: Statement = { text: 'select 1', values: [] }

/**
 * Runs transactions on postgres.js 3.4 by `sql.begin`; `transactionOf` gives what that gives to its
 * callback. Throws `TypeError` for anything but what `postgres()` returns.
 */
export function fromPostgresJs<T>(sql: PostgresJsLike<T>): TransactionRunner<T> {
  if (!isPostgresJs(sql)) {
    throw new TypeError('fromPostgresJs: expected what postgres() returns')
  }
  const running = new WeakMap<object, Open<T>>()
  const nameTransform = sql.options.transform.column.from

  const openOf = (tx: T): Open<T> => {
    const open = running.get(tx as object)
    if (open) return open
    throw new Error('fromPostgresJs: the transaction has ended, or its connection was lost')
  }

  const send = async (tx: T, { text, values }: Statement): Promise<Row[]> => {
    openOf(tx)
    const given = values.map((value) => value ?? null)
    return rowsOf(await unprepared(tx, text, given).raw(), text, nameTransform)
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
        await open.closing
        throw error
      })
      const result = await orLost(work(open.tx), lost)
      await close(open, [])
      return result
    } catch (error) {
      await rollBack(open, error)
      throw error
    } finally {
      running.delete(open.tx as object)
    }
  }

  /** A transaction is closed once, whoever asks for it again. */
  function close(open: Open<T>, statements: readonly Statement[]): Promise<void> {
    open.closing ??= (async () => {
      if (await isLostByNow(open)) await open.ended
      const { commitMs } = open
      const sent = sendAll(open.tx, statements.length > 0 ? statements : [PROBE])
      const answered = orLost(allDone<unknown>([...sent, commit(open)]), open.ended)
      await within(commitMs, answered, { tooLate: () => noAnswer(commitMs) })
      await leave(open)
    })()
    return open.closing
  }

  /** In a transaction: outside of one the library does not tell a statement that waits from a sent one. */
  function queryAlone(statement: Statement, limits: StatementLimits): Promise<readonly Row[]> {
    const { acquireMs, statementMs } = limits
    const timeout = { text: `set local statement_timeout = ${Math.ceil(statementMs)}`, values: [] }
    const work = async (tx: T): Promise<readonly Row[]> => {
      const answered = allDone(sendAll(tx, [timeout, statement]))
      const [, rows] = await within(statementMs, answered, { tooLate: () => noAnswer(statementMs) })
      return rows ?? []
    }
    return transaction(work, { acquireMs, transactionMs: statementMs })
  }

  return {
    transaction,
    async query(tx, text, values, limits = DEFAULT_LIMITS) {
      if (tx === undefined) return queryAlone({ text, values }, limits)
      const open = openOf(tx)
      if (await isLostByNow(open)) await open.ended
      return send(tx, { text, values })
    },
    batch: (tx, statements) => allDone(sendAll(tx, statements)),
    async commitWith(tx, statements) {
      await close(openOf(tx), statements)
    },
  }
}

function unprepared(tx: unknown, text: string, values: readonly unknown[] = []): RawQuery {
  return (tx as TransactionLike).unsafe(text, values, { prepare: false })
}

/** Rejects unless the server has committed. */
async function commit(open: Open<unknown>): Promise<void> {
  try {
    // Awaited as every statement is: the library sends a query when its `then` is called.
    const { command } = await unprepared(open.tx, COMMIT)
    if (command !== 'COMMIT') throw new Error(`Postgres answered COMMIT with ${command}`)
  } catch (error) {
    open.isRefused = Object(error).severity === 'ERROR'
    throw error
  }
}

/** What becomes of it is of no matter: the transaction that the library ends is empty. */
async function leave(open: Open<unknown>): Promise<void> {
  if (await isLostByNow(open)) return
  open.end()
  await within(ROLLBACK_MS, open.ended, { tooLate: () => noAnswer(ROLLBACK_MS) }).catch(() => {})
}

async function rollBack(open: Open<unknown>, reason: unknown): Promise<void> {
  if (await isLostByNow(open)) return
  // The library logs that there is nothing to roll back.
  if (open.isRefused) unprepared(open.tx, 'begin').then(undefined, () => {})
  open.fail(reason)
  await within(ROLLBACK_MS, open.ended, { tooLate: () => noAnswer(ROLLBACK_MS) }).catch(() => {})
}

/**
 * The library writes even on a connection that was lost, and that ends the process: it is told of the
 * end only after a turn of the event loop in which the loss would have shown.
 */
async function isLostByNow({ ended }: Open<unknown>): Promise<boolean> {
  let isLost = false
  ended.catch(() => {
    isLost = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  return isLost
}

/** What `begin` and `reserve` give has no `begin`. */
function isPostgresJs(sql: unknown): boolean {
  return typeof sql === 'function' && typeof Object(sql).begin === 'function'
}

/** The library queues without a bound: a transaction that it begins too late is rolled back unused. */
async function begin<T>(sql: PostgresJsLike<T>, limits: TransactionLimits): Promise<Open<T>> {
  const { acquireMs, transactionMs, isolation } = limits
  let isOver = false
  const opened = new Promise<Open<T>>((resolve, reject) => {
    const options = isolation ? `isolation level ${isolation}` : ''
    const attempt = (onFailure: (error: unknown) => void): void => {
      const ended = sql.begin(options, (tx) => {
        if (isOver) throw noConnection(acquireMs)
        return new Promise<void>((end, fail) => {
          const settled = Promise.resolve().then(() => ended)
          resolve({ tx, end, fail, ended: settled, commitMs: transactionMs })
        })
      })
      ended.catch(onFailure)
    }
    // The library gives the first transaction of a new connection the error that ended the one before.
    attempt((error) => (isFatal(error) && !isOver ? attempt(reject) : reject(error)))
  })
  const tooLate = (): Error => {
    isOver = true
    return noConnection(acquireMs)
  }
  return within(acquireMs, opened, { tooLate })
}

const isFatal = (error: unknown): boolean => Object(error).severity === 'FATAL'

/** On a connection that was lost the library can send nothing: nobody waits for the work any more. */
function orLost<R>(working: Promise<R>, ended: Promise<unknown>): Promise<R> {
  return new Promise((resolve, reject) => {
    working.then(resolve, reject)
    ended.catch(reject)
  })
}
