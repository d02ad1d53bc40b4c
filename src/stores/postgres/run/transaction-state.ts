import { noAnswer, within } from '../deadline.js'
import { isEndedByHandler } from '../sql/statements.js'
import { sqlStateOf } from '../sql-state.js'
import type { Place } from '../store-context.js'
import type { ServerFailure } from './live-runs.js'
import type { Life } from './run-stage.js'
import { failureAt } from './statement-failure.js'

/**
 * The state of a run's transaction after its handler has answered.
 *
 * - `ended`: the run's transaction is no longer open, so its handler ended it.
 * - `aborted`: a statement failed; only a rollback is possible.
 * - `lost`: the connection or its server is not available.
 * - `unknown`: the server did not answer in time, or with another error.
 */
export type TransactionState =
  | { readonly is: 'open' | 'aborted' | 'unknown' }
  | { readonly is: 'ended' | 'lost'; readonly error: unknown }

const STATE_MS = 500
const IN_FAILED_TRANSACTION = '25P02'

/** Queries the state. The handler's calls have ended, so only a lost connection is slow to answer. */
export async function stateOf<Tx>(
  { runner, statements }: Place<Tx>,
  tx: Tx,
  fence: number,
): Promise<TransactionState> {
  const { text, values } = statements.assertIn(String(fence))
  const timeout = noAnswer(STATE_MS)
  try {
    await within(STATE_MS, runner.query(tx, text, values), { tooLate: () => timeout })
    return { is: 'open' }
  } catch (error) {
    if (isEndedByHandler(error)) return { is: 'ended', error }
    const sqlState = sqlStateOf(error)
    if (sqlState === IN_FAILED_TRANSACTION) return { is: 'aborted' }
    const isLost = error !== timeout && failureAt('record', sqlState) === 'unavailable'
    return isLost ? { is: 'lost', error } : { is: 'unknown' }
  }
}

interface Answered {
  readonly life: Life
  readonly state: TransactionState
  /** The last failure of the handler's statements that the server caused. */
  readonly failure: ServerFailure | undefined
}

/**
 * Returns why the handler's answer does not count: the connection was lost, or the server failed a
 * statement whose error the handler passed on, or swallowed without a rollback to a savepoint.
 */
export function serverFault({
  life,
  state,
  failure,
}: Answered): { readonly error: unknown } | undefined {
  if (state.is === 'lost') return failure ?? state
  if (state.is === 'aborted') return failure
  const isPassedOn = life.at === 'undoing' && life.ending.type === 'roll_back'
  return isPassedOn && failure?.isUndone === false ? failure : undefined
}
