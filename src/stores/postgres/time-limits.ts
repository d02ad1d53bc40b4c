import { withDeadline } from '../../base/deadline.js'
import type { StatementLimits } from './runner.js'

/** The limits of a single statement of pg and postgres.js without limits of its own. */
export const DEFAULT_LIMITS: StatementLimits = { acquireMs: 1000, statementMs: 30_000 }

export function noConnection(acquireMs: number): Error {
  return new Error(`No connection to Postgres came within ${acquireMs} ms.`)
}

export function noAnswer(timeoutMs: number): Error {
  return new Error(`Postgres did not answer within ${timeoutMs} ms.`)
}

/** Settles as `answer` does if that takes at most `timeoutMs`; otherwise rejects. */
export const awaitAnswer = <T>(timeoutMs: number, answer: PromiseLike<T>): Promise<T> =>
  withDeadline({ timeoutMs, timeoutError: () => noAnswer(timeoutMs) }, answer)

/**
 * How long a caller waits for a rollback, in ms. The rollback waits for the statement before it, which
 * may hang and keeps its locks until the connection is destroyed.
 */
export const ROLLBACK_MS = 1000
