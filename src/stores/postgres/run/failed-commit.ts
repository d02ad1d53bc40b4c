import type { Undone } from '../../../base/decision/idempotency-event.js'
import type { CoupledOutcome } from '../../../idempotency/coupled/coupled-store.js'
import { isEndedByHandler } from '../sql/statements.js'
import { sqlStateOf } from '../sql-state.js'
import type { Place } from '../store-context.js'
import { keepAlone, learn, look, type Truth } from './resolve-commit.js'
import { findingOf, type KeptEnding } from './run-stage.js'
import { type ClosingStage, failureAt } from './statement-failure.js'
import type { Subject } from './transaction-attempt.js'

/** A transaction that was to be committed. */
interface Closing<Tx> extends Subject<Tx> {
  readonly ending: KeptEnding
  /** The transaction's id. */
  readonly fence: number
  readonly usedTransaction: boolean
  readonly usedToken: boolean
}

interface Failed {
  readonly stage: ClosingStage
  readonly error: unknown
}

/** What has become of a transaction whose record or COMMIT has failed. */
export async function failedClosing<Tx>(
  place: Place<Tx>,
  closing: Closing<Tx>,
  { stage, error }: Failed,
): Promise<CoupledOutcome> {
  if (isEndedByHandler(error)) return uncoupled(place, closing)
  const sqlState = sqlStateOf(error)
  const state = sqlState === undefined ? {} : { sqlState }
  switch (failureAt(stage, sqlState)) {
    case 'overtaken':
      return overtakenOr(place, closing, { outcome: 'commit_refused', cause: error, ...state })
    case 'conflict':
      return { ...undone('conflict'), mayRetryNow: true, ...state }
    case 'unavailable':
      return { ...undone('store_unavailable'), ...state }
    case 'refused':
      return { outcome: 'commit_refused', cause: error, ...state }
    case 'unclear':
      return { ...(await unheardCommit(place, closing)), ...state }
  }
}

/** Learns what a COMMIT has done that nobody has heard of. */
export async function unheardCommit<Tx>(
  place: Place<Tx>,
  closing: Closing<Tx>,
): Promise<CoupledOutcome> {
  const truth = await learn(place, closing)
  return outcomeBy(truth, closing)
}

function outcomeBy<Tx>(truth: Truth, { ending, usedTransaction }: Closing<Tx>): CoupledOutcome {
  switch (truth.type) {
    case 'committed':
      return { outcome: 'committed', usedTransaction }
    case 'overtaken':
      // The caller gets its refusal all the same: that nothing was written is true.
      if (ending.type === 'refuse') return { outcome: 'refusal_lost', to: 'conflict' }
      return { outcome: 'overtaken', by: truth.by }
    case 'nothing':
      return undone('store_unavailable')
    case 'unknown':
      return undone('commit_unknown')
  }
}

const undone = (reason: Undone): CoupledOutcome & { readonly outcome: 'undone' } => ({
  outcome: 'undone',
  reason,
  mayRetryNow: false,
})

/** A row with the id of one's own is there: the key's record, unless it is in another table. */
async function overtakenOr<Tx>(
  place: Place<Tx>,
  closing: Closing<Tx>,
  otherwise: CoupledOutcome,
): Promise<CoupledOutcome> {
  try {
    const record = await look(place, closing.ids)
    if (record === undefined) return otherwise
    return outcomeBy({ type: 'overtaken', by: findingOf(record) }, closing)
  } catch {
    return undone('store_unavailable')
  }
}

async function uncoupled<Tx>(
  place: Place<Tx>,
  { ids, request, ending, usedToken }: Closing<Tx>,
): Promise<CoupledOutcome> {
  const { result } = ending
  const { retentionMs } = request
  const kept = await keepAlone(place, ids, { result, retentionMs, usedToken })
  return { outcome: 'uncoupled', isKept: kept === 'kept' }
}
