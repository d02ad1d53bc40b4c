import { ServiceAuthError } from '../base/decision/service-auth-error.js'
import { optionsObject, parseOptions } from '../base/options.js'
import type { IdempotencyStore } from '../idempotency/leased/idempotency-store.js'
import * as records from '../idempotency/leased/record.js'
import type { RecordKeeper } from '../idempotency/leased/record-keeper.js'
import { createRecordKeeper } from '../idempotency/leased/record-keeper.js'
import type { SingleUseStore } from '../idempotency/single-use.js'
import { type StoreHealth, watchHealth } from './store-health.js'

/** The functions that every store of this package has. */
export interface Store extends SingleUseStore, IdempotencyStore, RecordKeeper {
  /**
   * Checks that the store is fit to hold reservations.
   *
   * @returns warnings, for the log
   * @throws ServiceAuthError `unavailable` if the store cannot be reached; `unfit` if it would lose
   * reservations or denies its user a permission, with a message that names the problem.
   */
  check(): Promise<readonly string[]>
  /** Returns how the last call ended, from memory. */
  health(): StoreHealth
  /** Closes the resources that the store has opened. Later calls are rejected. */
  close(): void
}

/** Expired records are removed from memory within a minute. */
const SWEEP_INTERVAL_MS = 20_000

/**
 * A store for one process, for development and tests.
 *
 * @throws TypeError for any option, because there are none.
 *
 * @example
 * ```ts
 * import { memoryStore } from 'express-service-auth'
 *
 * const store = memoryStore()
 * console.log(await store.consume('a token', 60_000)) // true
 * console.log(await store.consume('a token', 60_000)) // false
 * store.close()
 * ```
 */
export function memoryStore(options: Readonly<Record<string, never>> = {}): Store {
  parseOptions('memoryStore options', () => optionsObject({}), options)
  const consumed = new Map<string, number>()
  const stored = new Map<string, records.IdempotencyRecord>()
  const health = watchHealth()
  let fence = 0
  let closed = false

  // Reads the monotonic clock, because a change of the system time must neither end nor extend a lease.
  const sweeper = setInterval(() => sweep(performance.now()), SWEEP_INTERVAL_MS)
  sweeper.unref()

  function sweep(now: number): void {
    for (const [id, expiresAt] of consumed) if (expiresAt <= now) consumed.delete(id)
    for (const [id, record] of stored) if (record.expiresAt <= now) stored.delete(id)
  }

  /** Returns a fence above all earlier ones, including those of earlier processes. */
  function minFence(): number {
    fence = Math.max(fence + 1, Date.now() * 1000)
    return fence
  }

  function apply<T>(recordId: string, step: records.Transition<T>): T {
    if (step.record === undefined) stored.delete(recordId)
    else stored.set(recordId, step.record)
    return step.answer
  }

  /** Rejects if the store is closed, like a store that cannot be reached. */
  async function whileOpen<T>(work: (now: number) => T): Promise<T> {
    if (closed) throw new ServiceAuthError('unavailable', 'the memory store is closed')
    health.up()
    return work(performance.now())
  }

  const keeper = createRecordKeeper({
    read: (recordId) =>
      whileOpen((now) => {
        const record = records.liveRecord(stored.get(recordId), now)
        return record && { record, now }
      }),
    replace: (recordId, snapshot, next) =>
      whileOpen((now) => {
        // Each call of a run replaces the object, so an identical object is an unchanged record.
        const isUnchanged = records.liveRecord(stored.get(recordId), now) === snapshot.record
        if (isUnchanged) stored.set(recordId, next)
        return isUnchanged
      }),
  })

  return {
    ...keeper,
    consume: (id, ttlMs) =>
      whileOpen((now) => {
        if ((consumed.get(id) ?? now) > now) return false
        consumed.set(id, now + ttlMs)
        return true
      }),
    reserve: (request) =>
      whileOpen((now) => {
        const times = { now, minFence: minFence() }
        return apply(
          request.recordId,
          records.reserve(stored.get(request.recordId), request, times),
        )
      }),
    renew: (run) =>
      whileOpen((now) => apply(run.recordId, records.renew(stored.get(run.recordId), run, now))),
    settle: (run, ending) =>
      whileOpen((now) =>
        apply(run.recordId, records.settle(stored.get(run.recordId), { run, ending }, now)),
      ),
    check: () => whileOpen(() => []),
    health: health.read,
    close() {
      closed = true
      health.down('closed')
      clearInterval(sweeper)
      consumed.clear()
      stored.clear()
    },
  }
}
