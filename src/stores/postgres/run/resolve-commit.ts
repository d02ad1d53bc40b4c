import { setTimeout as delay } from 'node:timers/promises'
import type { Undone } from '../../../base/decision/idempotency-event.js'
import type { CoupledFinding, CoupledOutcome } from '../../../idempotency/coupled/coupled-store.js'
import { type RecordIds, tokenIds } from '../sql/record-ids.js'
import { isEndedByHandler, type KeptRecord } from '../sql/statements.js'
import { sqlStateOf } from '../sql-state.js'
import { ask, type Place } from '../store-context.js'
import type { UsedToken } from './live-runs.js'
import { findingOf, type KeptEnding } from './run-stage.js'
import { type ClosingStage, failureAt } from './statement-failure.js'
import type { Subject } from './transaction-attempt.js'

/** The result of writing a record outside the run's transaction. */
export type KeptAlone = 'kept' | 'conflict' | 'failure'

/** The outcome of a COMMIT, judged by the record that exists now. */
export type Truth =
  | { readonly type: 'committed' }
  /** Another run's record exists. */
  | { readonly type: 'overtaken'; readonly by: Exclude<CoupledFinding, { outcome: 'running' }> }
  | { readonly type: 'nothing' }
  | { readonly type: 'unknown' }

const UNIQUE_VIOLATION = '23505'
const LOCK_NOT_AVAILABLE = '55P03'
/** Postgres's error for the id of a transaction that it has not begun yet. */
const INVALID_PARAMETER_VALUE = '22023'
const PAUSE_MS = 50

/** Writes the record in a statement of its own. The first record wins. */
export async function keepAlone<Tx>(
  place: Place<Tx>,
  ids: RecordIds,
  kept: {
    readonly result: Uint8Array | undefined
    readonly retentionMs: number
    readonly usedToken: boolean
  },
): Promise<KeptAlone> {
  try {
    await ask(place, place.statements.keepAlone(ids, kept))
    return 'kept'
  } catch (error) {
    return sqlStateOf(error) === UNIQUE_VIOLATION ? 'conflict' : 'failure'
  }
}

/** Records the tokens of a run that was rolled back. */
export async function useUp<Tx>(place: Place<Tx>, tokens: readonly UsedToken[]): Promise<void> {
  const { statements, limits, schema } = place
  const uses = tokens.map(({ id, ttlMs }) =>
    ask(place, statements.useUp(tokenIds(id, schema), { ttlMs, waitMs: limits.resolveMs })),
  )
  // A failure is ignored, as after a crash: without the database, nothing can be written.
  await Promise.allSettled(uses)
}

async function look<Tx>(place: Place<Tx>, ids: RecordIds): Promise<KeptRecord | undefined> {
  return place.statements.readLooked(await ask(place, place.statements.look(ids)))
}

/** A transaction that may have committed. */
export interface Unheard {
  readonly ids: RecordIds
  readonly ending: KeptEnding
  /** The transaction's id. */
  readonly fence: number
}

/**
 * Finds out what a COMMIT without a reply did. Waits for the run's lock first, then looks for the
 * record in another statement, because a single one would look before it has the lock.
 */
async function learn<Tx>(place: Place<Tx>, unheard: Unheard): Promise<Truth> {
  const { acquireMs, resolveMs } = place.limits
  const until = performance.now() + resolveMs
  for (;;) {
    const leftMs = Math.floor(until - performance.now())
    if (leftMs <= 0) return { type: 'unknown' }
    const bounds = { acquireMs: Math.min(acquireMs, leftMs), statementMs: leftMs }
    try {
      await ask(place, place.statements.awaitEnd(unheard.ids, { waitMs: leftMs }), bounds)
      return await truthOf(place, unheard)
    } catch (error) {
      if (sqlStateOf(error) === LOCK_NOT_AVAILABLE) return { type: 'unknown' }
      await delay(PAUSE_MS, undefined, { ref: false })
    }
  }
}

async function truthOf<Tx>(place: Place<Tx>, { ids, ending, fence }: Unheard): Promise<Truth> {
  const record = await look(place, ids)
  if (record === undefined) return { type: 'nothing' }
  const isAsOurs = record.isSame && isEqual(record.result, ending.result)
  // Another run may also have stored the same result, or none.
  const isOurs = isAsOurs && !(await isRolledBack(place, fence))
  return isOurs ? { type: 'committed' } : { type: 'overtaken', by: findingOf(record) }
}

/** Also `false` if the server does not know the transaction, as after a failover. */
async function isRolledBack<Tx>(place: Place<Tx>, fence: number): Promise<boolean> {
  const { statements } = place
  try {
    return statements.readFate(await ask(place, statements.fate(String(fence)))) === 'aborted'
  } catch (error) {
    if (sqlStateOf(error) === INVALID_PARAMETER_VALUE) return false
    throw error
  }
}

const isEqual = (one: Uint8Array | undefined, other: Uint8Array | undefined): boolean =>
  one === undefined || other === undefined ? one === other : Buffer.compare(one, other) === 0

/** A transaction that the store tried to commit. */
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

/** Returns the outcome of a transaction whose record or COMMIT failed. */
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

/** Returns the outcome of a transaction whose COMMIT got no reply. */
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
      // The caller still gets its refusal, because it is true that nothing was written.
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

/** Returns the outcome by the key's record after a unique violation; `otherwise` if another table had it. */
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
