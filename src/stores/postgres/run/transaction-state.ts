import { withDeadline } from '../../../base/deadline.js'
import type { CoupledEnding } from '../../../idempotency/coupled/coupled-store.js'
import { noAnswer } from '../runner.js'
import { isEndedByHandler } from '../sql/record-statements.js'
import { IN_FAILED_SQL_TRANSACTION, sqlStateOf } from '../sql-state.js'
import type { StoreContext } from '../store-context.js'
import type { LiveRun } from './live-runs.js'
import { classifyFailure } from './outcome.js'

/** A run whose handler has answered. */
interface AnsweredRun<Tx> {
  readonly run: LiveRun<Tx>
  /** The id of the run's transaction. */
  readonly fence: number
  readonly ending: CoupledEnding
  /** Whether the handler's writes are to be committed. */
  readonly isKept: boolean
}

/**
 * A transaction in which the answer cannot be committed.
 *
 * - `ended`: the run's transaction is no longer open, so its handler ended it.
 * - `server_failed`: the connection was lost, or the server failed a statement whose error the handler
 *   passed on, or swallowed without a rollback to a savepoint.
 */
interface TransactionFailure {
  readonly type: 'ended' | 'server_failed'
  readonly error: unknown
}

/**
 * Finds out whether the transaction has failed. Queries its state only in two cases: before a rollback, because a
 * handler may have committed its writes itself, and after a failure of the server, because the handler may
 * have answered it with any status.
 */
export async function findFailure<Tx>(
  store: StoreContext<Tx>,
  answered: AnsweredRun<Tx>,
): Promise<TransactionFailure | undefined> {
  const { run, ending, isKept } = answered
  const { serverFailure } = run
  const isRolledBack = !isKept && run.usedTransaction
  if (!isRolledBack && serverFailure === undefined) return undefined
  const state = await queryState(store, answered)
  if (state.type === 'ended') return { type: 'ended', error: state.error }
  if (state.type === 'lost') return { type: 'server_failed', error: (serverFailure ?? state).error }
  const isPassedOn = ending.type === 'roll_back'
  const counts = state.type === 'aborted' || (isPassedOn && serverFailure?.isUndone === false)
  return serverFailure && counts ? { type: 'server_failed', error: serverFailure.error } : undefined
}

/**
 * - `ended`: the run's transaction is no longer open.
 * - `aborted`: a statement failed; only a rollback is possible.
 * - `lost`: the connection or its server is not available.
 * - `unknown`: the server did not answer in time, or with another error.
 */
type TransactionState =
  | { readonly type: 'open' | 'aborted' | 'unknown' }
  | { readonly type: 'ended' | 'lost'; readonly error: unknown }

const STATE_MS = 500

/** Queries the state. The handler's calls have ended, so only a lost connection is slow to answer. */
async function queryState<Tx>(
  { runner, statements }: StoreContext<Tx>,
  { run, fence }: AnsweredRun<Tx>,
): Promise<TransactionState> {
  const { text, values } = statements.assertInTransaction(String(fence))
  const timeout = noAnswer(STATE_MS)
  const limit = { timeoutMs: STATE_MS, timeoutError: () => timeout }
  try {
    await withDeadline(limit, runner.query(run.tx, text, values))
    return { type: 'open' }
  } catch (error) {
    if (isEndedByHandler(error)) return { type: 'ended', error }
    const sqlState = sqlStateOf(error)
    if (sqlState === IN_FAILED_SQL_TRANSACTION) return { type: 'aborted' }
    const isLost = error !== timeout && classifyFailure('record', sqlState) === 'unavailable'
    return isLost ? { type: 'lost', error } : { type: 'unknown' }
  }
}
