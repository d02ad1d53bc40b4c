import type { CoupledOutcome } from '../../../idempotency/coupled/coupled-store.js'
import { sqlStateOf } from '../sql-state.js'
import type { Place } from '../store-context.js'
import { failedClosing, keepAlone, unheardCommit, useUp } from './resolve-commit.js'
import type { Attempted, Subject } from './transaction-attempt.js'

/** Determines the outcome of a request, and stores the record or tokens that must survive a rollback. */
export async function outcomeOf<Tx>(
  place: Place<Tx>,
  subject: Subject<Tx>,
  attempted: Attempted,
): Promise<CoupledOutcome> {
  const outcome = await judge(place, subject, attempted)
  const { usedTokens, settled, ended } = attempted
  // Only this proves that the transaction stored the tokens; a record found later may be another run's.
  if (settled === 'committed' || usedTokens.length === 0) return outcome
  // Until the transaction ends, it holds the tokens.
  const used = ended.then(() => useUp(place, usedTokens))
  if (settled !== undefined) await used
  return outcome
}

async function judge<Tx>(
  place: Place<Tx>,
  subject: Subject<Tx>,
  attempted: Attempted,
): Promise<CoupledOutcome> {
  const { life, settled, usedTransaction } = attempted
  switch (life.at) {
    case 'known':
      return life.finding
    case 'given_up':
      return { outcome: 'undone', reason: life.reason, mayRetryNow: false }
    case 'opening':
    case 'running':
    case 'failed':
      return unavailable(settled)
    case 'undoing':
      assertRolledBack(settled)
      return rolledBack(place, subject, attempted)
    case 'recording':
    case 'committing': {
      if (life.at === 'recording') assertRolledBack(settled)
      if (settled === 'committed') return { outcome: 'committed', usedTransaction }
      const usedToken = attempted.usedTokens.length > 0
      const { fence = 0 } = attempted
      const closing = { ...subject, ending: life.ending, fence, usedTransaction, usedToken }
      if (settled === undefined) return unheardCommit(place, closing)
      const stage = life.at === 'committing' ? 'commit' : 'record'
      return failedClosing(place, closing, { stage, error: settled.error })
    }
  }
}

/** The outcome of a request that did nothing, because the database could not be queried. */
export function unavailable(settled: Attempted['settled']): CoupledOutcome {
  if (settled === 'committed') {
    throw new TypeError('TransactionRunner.transaction must run its work before it resolves')
  }
  const sqlState = settled && sqlStateOf(settled.error)
  return {
    outcome: 'undone',
    reason: 'store_unavailable',
    mayRetryNow: false,
    ...(sqlState !== undefined && { sqlState }),
  }
}

function assertRolledBack(settled: Attempted['settled']): void {
  if (settled !== 'committed') return
  throw new TypeError(
    'TransactionRunner.transaction must resolve only when it has committed its work',
  )
}

/** The handler's writes were rolled back. A refusal is still stored, by a statement of its own. */
async function rolledBack<Tx>(
  place: Place<Tx>,
  { request, ids }: Subject<Tx>,
  { life, usedTokens, isUncoupled }: Attempted,
): Promise<CoupledOutcome> {
  if (life.at !== 'undoing') return { outcome: 'rolled_back' }
  const { ending } = life
  if (ending.type === 'roll_back' && !isUncoupled) return { outcome: 'rolled_back' }
  const kept = await keepAlone(place, ids, {
    // A record without a result prevents a retry, which would repeat writes that the handler committed.
    result: ending.type === 'roll_back' ? undefined : ending.result,
    retentionMs: request.retentionMs,
    usedToken: usedTokens.length > 0,
  })
  if (isUncoupled) return { outcome: 'uncoupled', isKept: kept === 'kept' }
  return kept === 'kept' ? { outcome: 'refusal_kept' } : { outcome: 'refusal_lost', to: kept }
}
