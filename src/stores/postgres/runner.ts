/** How isolated a transaction is from others; see Postgres, "Transaction Isolation". */
export type Isolation = 'read committed' | 'repeatable read' | 'serializable'

/** A row as a client gives it: the names of its columns, and what the client makes of their values. */
export type Row = Record<string, unknown>

/** SQL with what its `$1`, `$2`, ... stand for. */
export interface Statement {
  /** The SQL. */
  readonly text: string
  /** What `$1`, `$2`, ... stand for, in their order. */
  readonly values: readonly unknown[]
}

/** Bounds of a transaction. Times in ms. */
export interface TransactionLimits {
  /** The wait for a connection. */
  readonly acquireMs: number
  /** The whole transaction. */
  readonly transactionMs: number
  /** By default the server's. */
  readonly isolation?: Isolation | undefined
}

/** Bounds of a statement outside of a transaction. Times in ms. */
export interface StatementLimits {
  /** The wait for a connection. Where none comes in time, the statement is never sent. */
  readonly acquireMs: number
  /** The wait for the answer. */
  readonly statementMs: number
}

/**
 * How a store runs transactions on a user's own client. `Tx` is what the client's own transaction
 * function gives to its callback.
 */
export interface TransactionRunner<Tx> {
  /**
   * Calls `work` at most once, inside a transaction; commits when it resolves, else rolls back, and
   * settles as it does. Rejects with the client's error when there is no connection in time, or when it
   * cannot commit.
   */
  transaction<R>(work: (tx: Tx) => Promise<R>, limits: TransactionLimits): Promise<R>
  /** One statement; in no transaction when `tx` is undefined. */
  query(
    tx: Tx | undefined,
    text: string,
    values: readonly unknown[],
    limits?: StatementLimits,
  ): Promise<readonly Row[]>
  /** Several statements in one round trip, the rows of each. */
  batch?(tx: Tx, statements: readonly Statement[]): Promise<readonly (readonly Row[])[]>
  /** The same, then `commit`; `transaction` sends none any more. */
  commitWith?(tx: Tx, statements: readonly Statement[]): Promise<void>
}
