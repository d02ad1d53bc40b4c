import type { CoupledOutcome } from '../../../idempotency/coupled/coupled-store.js'
import { tokenIds } from '../sql/record-ids.js'
import { isEndedByHandler } from '../sql/record-statements.js'
import { sqlStateOf, UNIQUE_VIOLATION } from '../sql-state.js'
import { query, type StoreContext } from '../store-context.js'
import type { UsedToken } from './live-runs.js'
import { resolveFailedCommit, resolveUnansweredCommit } from './resolve-commit.js'
import type { AttemptResult, RunInput, TransactionSettlement } from './transaction-attempt.js'

/** Determines the outcome of a request, and stores the record or tokens that must survive a rollback. */
export async function determineOutcome<Tx>(
  store: StoreContext<Tx>,
  input: RunInput<Tx>,
  result: AttemptResult,
): Promise<CoupledOutcome> {
  const outcome = await outcomeByStage(store, input, result)
  const { usedTokens, settlement, ended } = result
  // Only `committed` proves that the transaction stored the tokens; a record found later may be another run's.
  if (settlement.type === 'committed' || usedTokens.length === 0) return outcome
  // Waits for the end of the transaction, which holds the locks of the tokens until then.
  const consumed = ended.then(() => consumeAfterRollback(store, usedTokens))
  if (settlement.type !== 'pending') await consumed
  return outcome
}

async function outcomeByStage<Tx>(
  store: StoreContext<Tx>,
  input: RunInput<Tx>,
  result: AttemptResult,
): Promise<CoupledOutcome> {
  const { stage, settlement, usedTransaction, fence = 0, answeredAt = 0 } = result
  switch (stage.name) {
    case 'skipped':
      return stage.finding
    case 'timed_out':
      return { outcome: 'undone', reason: stage.reason, mayRetryNow: false }
    case 'beginning':
    case 'running':
    case 'failed':
      return unavailable(settlement)
    case 'rolling_back':
      assertRolledBack(settlement)
      return rolledBack(store, input, result)
    case 'writing_record':
    case 'committing': {
      if (stage.name === 'writing_record') assertRolledBack(settlement)
      if (settlement.type === 'committed') return { outcome: 'committed', usedTransaction }
      const { ending } = stage
      const { recordId, retentionMs } = input.request
      const isRecorded = recordId !== undefined
      const expiresAt = answeredAt + retentionMs
      const commit = { ids: input.ids, isRecorded, expiresAt, ending, fence, usedTransaction }
      if (settlement.type === 'pending') return resolveUnansweredCommit(store, commit)
      const { error } = settlement
      if (isEndedByHandler(error)) return uncoupled(store, input, result)
      const step = stage.name === 'committing' ? 'commit' : 'record'
      return resolveFailedCommit(store, commit, { step, error })
    }
  }
}

/** The outcome of a request that did nothing, because the database could not be queried. */
function unavailable(settlement: TransactionSettlement): CoupledOutcome {
  if (settlement.type === 'committed') {
    throw new TypeError('TransactionRunner.transaction must run its work before it resolves')
  }
  const sqlState = settlement.type === 'failed' ? sqlStateOf(settlement.error) : undefined
  return {
    outcome: 'undone',
    reason: 'store_unavailable',
    mayRetryNow: false,
    ...(sqlState !== undefined && { sqlState }),
  }
}

function assertRolledBack(settlement: TransactionSettlement): void {
  if (settlement.type !== 'committed') return
  throw new TypeError(
    'TransactionRunner.transaction must resolve only when it has committed its work',
  )
}

/** The handler's writes were rolled back. A separate statement still stores a refusal with a key. */
async function rolledBack<Tx>(
  store: StoreContext<Tx>,
  input: RunInput<Tx>,
  result: AttemptResult,
): Promise<CoupledOutcome> {
  const { stage, isUncoupled } = result
  if (stage.name !== 'rolling_back') return { outcome: 'rolled_back' }
  const { ending } = stage
  if (isUncoupled) return uncoupled(store, input, result)
  if (ending.type === 'roll_back' || input.request.recordId === undefined) {
    return { outcome: 'rolled_back' }
  }
  const inserted = await insertRecord(store, input, recordOf(result, ending.result))
  return inserted === 'kept'
    ? { outcome: 'refusal_kept' }
    : { outcome: 'refusal_lost', to: inserted }
}

/** The handler ended its transaction itself. Its record prevents a retry, which would repeat committed writes. */
async function uncoupled<Tx>(
  store: StoreContext<Tx>,
  input: RunInput<Tx>,
  result: AttemptResult,
): Promise<CoupledOutcome> {
  if (input.request.recordId !== undefined) {
    const { stage } = result
    const answer =
      'ending' in stage && stage.ending.type !== 'roll_back' ? stage.ending.result : undefined
    await insertRecord(store, input, recordOf(result, answer))
  }
  return { outcome: 'uncoupled' }
}

const recordOf = ({ usedTokens }: AttemptResult, result: Uint8Array | undefined) => ({
  result,
  usedToken: usedTokens.length > 0,
})

/** Writes the record outside the run's transaction. The first record of a key wins. */
async function insertRecord<Tx>(
  store: StoreContext<Tx>,
  { ids, request: { retentionMs } }: RunInput<Tx>,
  record: ReturnType<typeof recordOf>,
): Promise<'kept' | 'overtaken' | 'failure'> {
  try {
    await query(store, store.statements.insertRecordSeparately(ids, { ...record, retentionMs }))
    return 'kept'
  } catch (error) {
    return sqlStateOf(error) === UNIQUE_VIOLATION ? 'overtaken' : 'failure'
  }
}

/** Records the tokens of a run that was rolled back. */
async function consumeAfterRollback<Tx>(
  store: StoreContext<Tx>,
  tokens: readonly UsedToken[],
): Promise<void> {
  const { statements, limits, schema } = store
  const waitMs = limits.resolveMs
  const consumed = tokens.map(({ id, ttlMs }) =>
    query(store, statements.consumeAfterRollback(tokenIds(id, schema), { ttlMs, waitMs })),
  )
  // A failure is ignored, as after a crash: without the database, nothing can be written.
  await Promise.allSettled(consumed)
}
