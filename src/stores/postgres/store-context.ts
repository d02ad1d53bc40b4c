import { noAnswer, within } from './deadline.js'
import type { Isolation, Row, Statement, StatementLimits, TransactionRunner } from './runner.js'
import type { Statements } from './sql/statements.js'

/** Bounds of what a store does. Times in ms. */
export interface PostgresLimits {
  /** The wait for a connection. */
  readonly acquireMs: number
  /** A whole run. */
  readonly transactionMs: number
  /** To learn what a COMMIT did; also what a run may take until its handler begins. */
  readonly resolveMs: number
  readonly isolation?: Isolation | undefined
}

/** Where the records are, and how they are reached. */
export interface Place<Tx> {
  readonly runner: TransactionRunner<Tx>
  /** The schema of the tables. */
  readonly schema: string
  readonly statements: Statements
  readonly limits: PostgresLimits
}

/** What a runner may take beyond its own bounds, in ms. */
const GRACE_MS = 500

/** Runs a statement by itself, in no transaction. A runner that does not answer is given up. */
export async function ask<Tx>(
  { runner, limits }: Place<Tx>,
  { text, values }: Statement,
  bounds: Partial<StatementLimits> = {},
): Promise<readonly Row[]> {
  const { acquireMs, resolveMs: statementMs } = limits
  const bounded = { acquireMs, statementMs, ...bounds }
  const timeoutMs = bounded.acquireMs + bounded.statementMs + GRACE_MS
  const asked = runner.query(undefined, text, values, bounded)
  return within(timeoutMs, asked, { tooLate: () => noAnswer(timeoutMs) })
}
