import { noAnswer, noConnection, ROLLBACK_MS, within } from '../deadline.js'
import type { TransactionLimits } from '../runner.js'
import { endedByHandler } from '../sql/transaction-ended.js'
import { sqlStateOf } from '../sql-state.js'
import { nextPoll } from './next-poll.js'
import type { NameTransform, RawResult } from './postgres-js-rows.js'

/** `sql` of postgres.js 3.4; `T` is what `sql.begin` gives to its callback. */
export interface PostgresJsLike<T> {
  /** The library's own: how it renames columns, and what makes its sockets. */
  readonly options: {
    readonly transform: { readonly column: { readonly from: NameTransform } }
    readonly socket?: unknown
  }
  /** The library's own. */
  begin<R>(work: (sql: T) => R | Promise<R>): Promise<unknown>
  /** The library's own. */
  begin<R>(options: string, work: (sql: T) => R | Promise<R>): Promise<unknown>
}

interface Result extends RawResult {
  /** What the server says that it has done. */
  readonly command: string
  /** The connection's backend. */
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
  /** The library sends its `commit`. */
  readonly end: () => void
  /** The library rolls back. */
  readonly fail: (reason: unknown) => void
  /** Settles when the library has ended the transaction, or lost its connection. */
  readonly ended: Promise<unknown>
  /** How long a server may take to answer the commit, before it is given up. */
  readonly commitMs: number
  readonly handover: Handover
  /** The process id of the connection's backend, once it is known. */
  backend?: number
  closing?: Promise<void>
  /** The server has refused to commit, which ends a transaction. */
  isRefused?: boolean
}

/**
 * After each answer that leaves its connection in no transaction the library gives the connection to
 * another request, although the transaction's callback still runs. Only the handler can cause that, by a
 * text of several statements. From then on nothing of this transaction may be sent: the library would
 * queue it without end, or send it, also its `commit` or `rollback`, into the other's transaction.
 */
interface Handover {
  /** Rejects when it is known. */
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
 * The library's own `commit` is a prepared statement, which the connection that pgbouncer gives it may not
 * know: then the transaction is rolled back, and the library takes that for done. This one commits, and
 * leaves the library an empty transaction to end.
 */
const COMMIT = 'commit and chain'

const IN_FAILED_TRANSACTION = '25P02'

// Behind a statement that hangs the library waits forever; the server ends that by its own time limit.
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
  if (open.handover.cause !== undefined && !(await isStillOurs(open))) return
  // The library logs that there is nothing to roll back.
  if (open.isRefused) unprepared(open.tx, 'begin').then(undefined, () => {})
  open.fail(reason)
  await within(ROLLBACK_MS, open.ended, { tooLate: () => noAnswer(ROLLBACK_MS) }).catch(() => {})
}

/**
 * Whether the connection is in a transaction that a handler began after it ended its own. The statement
 * that failed there aborted it, so that the next one fails, too.
 */
async function isStillOurs({ tx, handover }: Open<unknown>): Promise<boolean> {
  if (handover.cause === 'other_request') return false
  const asked = Promise.resolve(unprepared(tx, 'select 1'))
  const tooLate = (): Error => noAnswer(ROLLBACK_MS)
  const state = await within(ROLLBACK_MS, asked, { tooLate }).then(() => undefined, sqlStateOf)
  return state === IN_FAILED_TRANSACTION && handover.cause === 'failed_statement'
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
          const handover = createHandover()
          resolve({ tx, end, fail, ended: settled, commitMs: transactionMs, handover })
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
