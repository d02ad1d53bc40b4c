import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { withDeadline } from '../../../base/deadline.js'
import { awaitAnswer, noConnection, ROLLBACK_MS, type TransactionLimits } from '../runner.js'
import { endedByHandler } from '../sql/record-statements.js'
import { IN_FAILED_SQL_TRANSACTION, sqlStateOf } from '../sql-state.js'
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
export interface OpenTransaction<T> {
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
  committing?: Promise<void>
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
  readonly rejection: Promise<never>
  readonly cause: HandoverCause | undefined
  report(cause: HandoverCause): void
}

type HandoverCause = 'failed_statement' | 'other_request'

function createHandover(): Handover {
  let reject: (reason: Error) => void
  const known = new Promise<never>((_resolve, fail) => {
    reject = fail
  })
  known.catch(() => {})
  const handover = {
    rejection: known,
    cause: undefined as HandoverCause | undefined,
    report(cause: HandoverCause) {
      handover.cause = cause
      reject(endedByHandler())
    },
  }
  return handover
}

/**
 * The library's own `commit` is a prepared statement, which the connection that pgbouncer assigns may not
 * know. Then the transaction is rolled back, but the library treats it as committed. This statement
 * commits, and leaves the library an empty transaction to end.
 */
const COMMIT = 'commit and chain'

export function unprepared(tx: unknown, text: string, values: readonly unknown[] = []): RawQuery {
  return (tx as TransactionLike).unsafe(text, values, { prepare: false })
}

/** Rejects unless the server has committed. */
export async function commit(open: OpenTransaction<unknown>): Promise<void> {
  try {
    // `await` sends the query: the library sends one when its `then` is called.
    const { command } = await unprepared(open.tx, COMMIT)
    if (command !== 'COMMIT') throw new Error(`Postgres answered COMMIT with ${command}`)
  } catch (error) {
    open.isRefused = Object(error).severity === 'ERROR'
    throw error
  }
}

/** Lets the library end the transaction that `COMMIT` chained. It is empty, so the result does not matter. */
export async function endEmpty(open: OpenTransaction<unknown>): Promise<void> {
  if (await hasDisconnected(open)) return
  open.end()
  await awaitAnswer(ROLLBACK_MS, open.ended).catch(() => {})
}

export async function rollBack(open: OpenTransaction<unknown>, reason: unknown): Promise<void> {
  if (await hasDisconnected(open)) return
  if (open.handover.cause !== undefined && !(await isStillOurs(open))) return
  // Otherwise the library logs that there is nothing to roll back.
  if (open.isRefused) unprepared(open.tx, 'begin').then(undefined, () => {})
  open.fail(reason)
  await awaitAnswer(ROLLBACK_MS, open.ended).catch(() => {})
}

/**
 * Whether the connection is in a transaction that a handler began after it ended its own. The failed
 * statement aborted that transaction, so the next statement fails too.
 */
async function isStillOurs({ tx, handover }: OpenTransaction<unknown>): Promise<boolean> {
  if (handover.cause === 'other_request') return false
  const answer = Promise.resolve(unprepared(tx, 'select 1'))
  const state = await awaitAnswer(ROLLBACK_MS, answer).then(() => undefined, sqlStateOf)
  return state === IN_FAILED_SQL_TRANSACTION && handover.cause === 'failed_statement'
}

/**
 * Waits one turn of the event loop, in which a lost connection shows. The library would write even to a
 * lost connection, which crashes the process.
 */
export async function hasDisconnected({ ended }: OpenTransaction<unknown>): Promise<boolean> {
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
): Promise<OpenTransaction<T>> {
  const { acquireMs, transactionMs, isolation } = limits
  let isOver = false
  const opened = new Promise<OpenTransaction<T>>((resolve, reject) => {
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
  const timeoutError = (): Error => {
    isOver = true
    return noConnection(acquireMs)
  }
  return withDeadline({ timeoutMs: acquireMs, timeoutError }, opened)
}

const isFatal = (error: unknown): boolean => Object(error).severity === 'FATAL'

/** Also rejects when the connection is lost: the library can then send nothing, so the work is not awaited. */
export function rejectOnDisconnect<R>(working: Promise<R>, ended: Promise<unknown>): Promise<R> {
  return new Promise((resolve, reject) => {
    working.then(resolve, reject)
    ended.catch(reject)
  })
}

const waiting: (() => void)[] = []
let sender: MessagePort | undefined

/**
 * Resolves in the poll phase of the event loop, which comes before its immediates. A write that postgres.js
 * makes in an immediate is sent by the next one. A connection that closes in between never writes again,
 * nor does its replacement.
 */
function nextPoll(): Promise<void> {
  sender ??= openChannel()
  sender.postMessage(undefined)
  return new Promise((resolve) => waiting.push(resolve))
}

/** Does not keep the process alive. */
function openChannel(): MessagePort {
  const { port1, port2 } = new MessageChannel()
  port2.on('message', () => waiting.shift()?.())
  port2.unref()
  return port1
}
