import { withDeadline } from '../../base/deadline.js'

/** A transaction isolation level; see Postgres, "Transaction Isolation". */
export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

/** A row as the client returns it: column names, and the values as the client parses them. */
export type Row = Record<string, unknown>

/** An SQL statement with its parameters. */
export interface Statement {
  /** The SQL. */
  readonly text: string
  /** The values of `$1`, `$2`, ..., in order. */
  readonly values: readonly unknown[]
}

/** Limits of a transaction. Times in ms. */
export interface TransactionLimits {
  /** The maximum wait for a connection. */
  readonly acquireMs: number
  /** The maximum time of the whole transaction. */
  readonly transactionMs: number
  /** Default: the server's. */
  readonly isolation?: Isolation | undefined
}

/** A statement without values that opens a transaction. */
export interface FirstStatement {
  readonly text: string
  /** The rows of its answer, once a runner has sent it with its `begin`. */
  rows?: readonly Row[] | undefined
}

/** The limits of a transaction of a runner that is one of `SENDING_FIRST`. */
export interface OpeningLimits extends TransactionLimits {
  readonly first?: FirstStatement | undefined
}

/**
 * Runners that send the first statement together with their `begin`. A runner that a user has wrapped is none of them:
 * it may do something before the work.
 */
export const SENDING_FIRST = new WeakSet<object>()

/** Limits of a statement outside a transaction. Times in ms. */
export interface StatementLimits {
  /** The maximum wait for a connection. Without a connection in time, the statement is never sent. */
  readonly acquireMs: number
  /** The maximum wait for the answer. */
  readonly statementMs: number
}

/**
 * Runs a store's transactions on the user's client. `Tx` is the object that the client's own
 * transaction function passes to its callback.
 */
export interface TransactionRunner<Tx> {
  /**
   * Calls `work` at most once, inside a transaction. Commits if `work` resolves, otherwise rolls back, and settles
   * as `work` does. Rejects with the client's error if there is no connection in time, or if it cannot commit.
   */
  transaction<R>(work: (tx: Tx) => Promise<R>, limits: TransactionLimits): Promise<R>
  /** Runs one statement, outside a transaction if `tx` is `undefined`. */
  query(
    tx: Tx | undefined,
    text: string,
    values: readonly unknown[],
    limits?: StatementLimits,
  ): Promise<readonly Row[]>
}

export function noAnswer(timeoutMs: number): Error {
  return new Error(`Postgres did not answer within ${timeoutMs} ms.`)
}

/** Settles as `answer` does if that takes at most `timeoutMs`; otherwise rejects. */
export const awaitAnswer = <T>(timeoutMs: number, answer: PromiseLike<T>): Promise<T> =>
  withDeadline({ timeoutMs, timeoutError: () => noAnswer(timeoutMs) }, answer)

/**
 * Reads a column of this package's statements. All columns are texts with names of one lower-case
 * word, so that a type parser does not change them, and a plug-in that renames columns only their first letter.
 */
export function textIn(row: Row, column: string): string | undefined {
  const value = column in row ? row[column] : row[column[0]?.toUpperCase() + column.slice(1)]
  if (value === null) return undefined
  if (typeof value === 'string') return value
  throw new TypeError(`Postgres must answer with a text in the column ${column}`)
}

/** Returns the row of a statement that always returns exactly one. */
export function onlyRow(rows: readonly Row[] | undefined): Row {
  const [row] = rows ?? []
  if (row !== undefined && rows?.length === 1) return row
  throw new TypeError('Postgres must answer with one row')
}
