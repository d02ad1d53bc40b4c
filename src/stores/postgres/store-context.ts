import {
  awaitAnswer,
  type Row,
  type Statement,
  type StatementLimits,
  type TransactionLimits,
  type TransactionRunner,
} from './runner.js'
import type { Statements } from './sql/statements.js'

/** Limits of a store. Times in ms. */
export interface PostgresLimits extends TransactionLimits {
  /** The time to find out what a COMMIT did, and, in addition to `acquireMs`, the time until a handler begins. */
  readonly resolveMs: number
}

/** The runner, the schema, the statements and the limits of a store. */
export interface StoreContext<Tx> {
  readonly runner: TransactionRunner<Tx>
  readonly schema: string
  readonly statements: Statements
  readonly limits: PostgresLimits
}

/** The time by which a runner may exceed its own limits, in ms. */
const GRACE_MS = 500

/** Runs a single statement outside a transaction. Rejects if the runner does not answer in time. */
export async function query<Tx>(
  { runner, limits }: StoreContext<Tx>,
  { text, values }: Statement,
  { acquireMs = limits.acquireMs, statementMs = limits.resolveMs }: Partial<StatementLimits> = {},
): Promise<readonly Row[]> {
  const timeoutMs = acquireMs + statementMs + GRACE_MS
  const answer = runner.query(undefined, text, values, { acquireMs, statementMs })
  return awaitAnswer(timeoutMs, answer)
}
