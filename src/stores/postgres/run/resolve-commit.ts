import { setTimeout as delay } from 'node:timers/promises'
import type { CoupledFinding } from '../../../idempotency/coupled/coupled-store.js'
import { type RecordIds, tokenIds } from '../sql/record-ids.js'
import type { KeptRecord } from '../sql/statements.js'
import { sqlStateOf } from '../sql-state.js'
import { ask, type Place } from '../store-context.js'
import type { UsedToken } from './live-runs.js'
import { findingOf, type KeptEnding } from './run-stage.js'

/** A record that is written by itself: whether it was, or why not. */
export type KeptAlone = 'kept' | 'conflict' | 'failure'

/** What a COMMIT has done, by what is there now. */
export type Truth =
  | { readonly type: 'committed' }
  /** Another run's record is there. */
  | { readonly type: 'overtaken'; readonly by: Exclude<CoupledFinding, { outcome: 'running' }> }
  | { readonly type: 'nothing' }
  | { readonly type: 'unknown' }

const UNIQUE_VIOLATION = '23505'
const LOCK_NOT_AVAILABLE = '55P03'
/** What Postgres says of the id of a transaction that it has not begun yet. */
const INVALID_PARAMETER_VALUE = '22023'
const PAUSE_MS = 50

/** Writes the record by a statement of its own. The first record wins. */
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

/** Remembers the tokens of a run that was rolled back. */
export async function useUp<Tx>(place: Place<Tx>, tokens: readonly UsedToken[]): Promise<void> {
  const { statements, limits, schema } = place
  const uses = tokens.map(({ id, ttlMs }) =>
    ask(place, statements.useUp(tokenIds(id, schema), { ttlMs, waitMs: limits.resolveMs })),
  )
  // As after a crash: who cannot reach the database cannot write to it.
  await Promise.allSettled(uses)
}

/** Looks for the record. */
export async function look<Tx>(place: Place<Tx>, ids: RecordIds): Promise<KeptRecord | undefined> {
  return place.statements.readLooked(await ask(place, place.statements.look(ids)))
}

/** A transaction that may have committed. */
export interface Unheard {
  readonly ids: RecordIds
  readonly ending: KeptEnding
  /** Its id. */
  readonly fence: number
}

/**
 * What a COMMIT that nobody has heard of has done. It waits for the run's lock first, then looks in
 * another statement: one alone would look before it has the lock.
 */
export async function learn<Tx>(place: Place<Tx>, unheard: Unheard): Promise<Truth> {
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
  // Another run may have left the same result, or none, too.
  const isOurs = isAsOurs && !(await isRolledBack(place, fence))
  return isOurs ? { type: 'committed' } : { type: 'overtaken', by: findingOf(record) }
}

/** `false` too where the server knows nothing of the transaction, as after a failover. */
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
