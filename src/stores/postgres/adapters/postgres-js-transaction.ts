import { noAnswer, noConnection, ROLLBACK_MS, within } from '../bounded.js'
import type { TransactionLimits } from '../runner.js'
import { nextPoll } from './next-poll.js'
import type { NameTransform, RawResult } from './postgres-js-rows.js'

/** `sql` of postgres.js 3.4; `T` is what `sql.begin` gives to its callback. */
export interface PostgresJsLike<T> {
  /** The library's own: how it renames columns. */
  readonly options: { readonly transform: { readonly column: { readonly from: NameTransform } } }
  /** The library's own. */
  begin<R>(work: (sql: T) => R | Promise<R>): Promise<unknown>
  /** The library's own. */
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
export interface Open<T> {
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
export function unprepared(tx: unknown, text: string, values: readonly unknown[] = []): RawQuery {
  return (tx as TransactionLike).unsafe(text, values, { prepare: false })
}

/** Rejects unless the server has committed. */
export async function commit(open: Open<unknown>): Promise<void> {
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
export async function leave(open: Open<unknown>): Promise<void> {
  if (await isLostByNow(open)) return
  open.end()
  await within(ROLLBACK_MS, open.ended, { tooLate: () => noAnswer(ROLLBACK_MS) }).catch(() => {})
}

export async function rollBack(open: Open<unknown>, reason: unknown): Promise<void> {
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
export async function isLostByNow({ ended }: Open<unknown>): Promise<boolean> {
  let isLost = false
  ended.catch(() => {
    isLost = true
  })
  await new Promise((resolve) => setImmediate(resolve))
  await nextPoll()
  return isLost
}

/** The library queues without a bound: a transaction that it begins too late is rolled back unused. */
export async function begin<T>(
  sql: PostgresJsLike<T>,
  limits: TransactionLimits,
): Promise<Open<T>> {
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
export function orLost<R>(working: Promise<R>, ended: Promise<unknown>): Promise<R> {
  return new Promise((resolve, reject) => {
    working.then(resolve, reject)
    ended.catch(reject)
  })
}
