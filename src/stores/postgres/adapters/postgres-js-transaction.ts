import { noAnswer, noConnection, ROLLBACK_MS, within } from '../deadline.js'
import type { TransactionLimits } from '../runner.js'
import { endedByHandler } from '../sql/transaction-ended.js'
import { sqlStateOf } from '../sql-state.js'
import { nextPoll } from './next-poll.js'
import type { NameTransform, RawResult } from './postgres-js-rows.js'

/** `sql` of postgres.js 3.4; `T` is the object that `sql.begin` passes to its callback. */
export interface PostgresJsLike<T> {
  /** `transform` renames columns, `socket` creates the sockets. */
  readonly options: {
    readonly transform: { readonly column: { readonly from: NameTransform } }
    readonly socket?: unknown
  }
  /** Runs `work` in a transaction. */
  begin<R>(work: (sql: T) => R | Promise<R>): Promise<unknown>
  /** Runs `work` in a transaction with options such as its isolation level. */
  begin<R>(options: string, work: (sql: T) => R | Promise<R>): Promise<unknown>
}

interface Result extends RawResult {
  /** The command tag of the server's answer. */
  readonly command: string
  /** `pid` is the process id of the connection's backend. */
  readonly state: { readonly pid: number }
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
  /** Lets the library send its `commit`. */
  readonly end: () => void
  /** Lets the library roll back. */
  readonly fail: (reason: unknown) => void
  /** Settles when the library has ended the transaction, or lost its connection. */
  readonly ended: Promise<unknown>
  /** The maximum wait for the answer to the commit. */
  readonly commitMs: number
  readonly handover: Handover
  /** The process id of the connection's backend, once it is known. */
  backend?: number
  closing?: Promise<void>
  /** Whether the server refused the commit, which ends a transaction. */
  isRefused?: boolean
}

/**
 * The library gives a connection to another request after each answer that leaves the connection outside a
 * transaction, although the transaction's callback is still running. Only the handler can cause that, by a
 * text of several statements. From then on nothing of this transaction may be sent: the library would
 * queue it forever, or send it, even its `commit` or `rollback`, into the other request's transaction.
 */
interface Handover {
  /** Rejects when the handover is known. */
  readonly known: Promise<never>
  readonly cause: 'failed_statement' | 'other_request' | undefined
  tell(cause: 'failed_statement' | 'other_request'): void
}

function createHandover(): Handover {
  let cause: Handover['cause']
  let reject: (reason: Error) => void
  const known = new Promise<never>((_resolve, fail) => {
    reject = fail
  })
  known.catch(() => {})
  return {
    known,
    get cause() {
      return cause
    },
    tell(reason) {
      cause = reason
      reject(endedByHandler())
    },
  }
}

/**
 * The library's own `commit` is a prepared statement, which the connection that pgbouncer assigns may not
 * know. Then the transaction is rolled back, but the library treats it as committed. This statement
 * commits, and leaves the library an empty transaction to end.
 */
const COMMIT = 'commit and chain'

const IN_FAILED_TRANSACTION = '25P02'

export function unprepared(tx: unknown, text: string, values: readonly unknown[] = []): RawQuery {
  return (tx as TransactionLike).unsafe(text, values, { prepare: false })
}

/** Rejects unless the server has committed. */
export async function commit(open: Open<unknown>): Promise<void> {
  try {
    // `await` sends the query: the library sends one when its `then` is called.
    const { command } = await unprepared(open.tx, COMMIT)
    if (command !== 'COMMIT') throw new Error(`Postgres answered COMMIT with ${command}`)
  } catch (error) {
    open.isRefused = Object(error).severity === 'ERROR'
    throw error
  }
}

/** Lets the library end its transaction. That is empty, so the result does not matter. */
export async function leave(open: Open<unknown>): Promise<void> {
  if (await isLostByNow(open)) return
  open.end()
  await within(ROLLBACK_MS, open.ended, { tooLate: () => noAnswer(ROLLBACK_MS) }).catch(() => {})
}

export async function rollBack(open: Open<unknown>, reason: unknown): Promise<void> {
  if (await isLostByNow(open)) return
  if (open.handover.cause !== undefined && !(await isStillOurs(open))) return
  // Otherwise the library logs that there is nothing to roll back.
  if (open.isRefused) unprepared(open.tx, 'begin').then(undefined, () => {})
  open.fail(reason)
  await within(ROLLBACK_MS, open.ended, { tooLate: () => noAnswer(ROLLBACK_MS) }).catch(() => {})
}

/**
 * Whether the connection is in a transaction that a handler began after it ended its own. The failed
 * statement aborted that transaction, so the next statement fails too.
 */
async function isStillOurs({ tx, handover }: Open<unknown>): Promise<boolean> {
  if (handover.cause === 'other_request') return false
  const asked = Promise.resolve(unprepared(tx, 'select 1'))
  const tooLate = (): Error => noAnswer(ROLLBACK_MS)
  const state = await within(ROLLBACK_MS, asked, { tooLate }).then(() => undefined, sqlStateOf)
  return state === IN_FAILED_TRANSACTION && handover.cause === 'failed_statement'
}

/**
 * Waits one turn of the event loop, in which a lost connection shows. The library would write even to a
 * lost connection, which crashes the process.
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

/** The library queues without a limit: a transaction that it begins too late is rolled back unused. */
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
          const handover = createHandover()
          resolve({ tx, end, fail, ended: settled, commitMs: transactionMs, handover })
        })
      })
      ended.catch(onFailure)
    }
    // The library rejects the first transaction of a new connection with the error that ended the previous one.
    attempt((error) => (isFatal(error) && !isOver ? attempt(reject) : reject(error)))
  })
  const tooLate = (): Error => {
    isOver = true
    return noConnection(acquireMs)
  }
  return within(acquireMs, opened, { tooLate })
}

const isFatal = (error: unknown): boolean => Object(error).severity === 'FATAL'

/** Also rejects when the connection is lost: the library can then send nothing, so the work is not awaited. */
export function orLost<R>(working: Promise<R>, ended: Promise<unknown>): Promise<R> {
  return new Promise((resolve, reject) => {
    working.then(resolve, reject)
    ended.catch(reject)
  })
}
