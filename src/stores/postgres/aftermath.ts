import { setTimeout as delay } from 'node:timers/promises'
import type { CoupledFinding } from '../../coupled/store.js'
import { findingOf, type KeptEnding } from './life.js'
import type { UsedToken } from './live-runs.js'
import { ask, type Place } from './place.js'
import { type RecordIds, tokenIds } from './record-ids.js'
import { sqlStateOf } from './sql-state.js'
import type { KeptRecord } from './statements.js'

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

/**
 * What a COMMIT that nobody has heard of has done. It waits for the run's lock first, then looks in
 * another statement: one alone would look before it has the lock.
 */
export async function learn<Tx>(
  place: Place<Tx>,
  ids: RecordIds,
  ending: KeptEnding,
): Promise<Truth> {
  const { acquireMs, resolveMs } = place.limits
  const until = performance.now() + resolveMs
  for (;;) {
    const leftMs = Math.floor(until - performance.now())
    if (leftMs <= 0) return { type: 'unknown' }
    const bounds = { acquireMs: Math.min(acquireMs, leftMs), statementMs: leftMs }
    try {
      await ask(place, place.statements.awaitEnd(ids, { waitMs: leftMs }), bounds)
      return truthOf(await look(place, ids), ending)
    } catch (error) {
      if (sqlStateOf(error) === LOCK_NOT_AVAILABLE) return { type: 'unknown' }
      await delay(PAUSE_MS, undefined, { ref: false })
    }
  }
}

function truthOf(record: KeptRecord | undefined, { result }: KeptEnding): Truth {
  if (record === undefined) return { type: 'nothing' }
  const isOurs = record.isSame && isEqual(record.result, result)
  return isOurs ? { type: 'committed' } : { type: 'overtaken', by: findingOf(record) }
}

const isEqual = (one: Uint8Array | undefined, other: Uint8Array | undefined): boolean =>
  one === undefined || other === undefined ? one === other : Buffer.compare(one, other) === 0
