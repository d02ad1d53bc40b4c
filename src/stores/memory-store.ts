import { ServiceAuthError } from '../base/decision/service-auth-error.js'
import { optionsObject, parseOptions } from '../base/options.js'
import type { IdempotencyStore } from '../idempotency/leased/idempotency-store.js'
import * as records from '../idempotency/leased/record.js'
import { createRecordKeeper } from '../idempotency/leased/record-keeper.js'
import type { RecordKeeper } from '../idempotency/leased/record-view.js'
import type { SingleUseStore } from '../idempotency/single-use.js'
import { type StoreHealth, watchHealth } from './store-health.js'

/** What both kinds of stores of this package can do. */
export interface Store extends SingleUseStore, IdempotencyStore, RecordKeeper {
  /**
   * Checks that the store can be trusted with reservations.
   *
   * @returns warnings, for the log
   * @throws ServiceAuthError `unavailable` if the store cannot be reached; `unfit`, naming the fault, if it
   * would lose reservations or denies its user a right.
   */
  check(): Promise<readonly string[]>
  /** How the last call ended, from memory. */
  health(): StoreHealth
  /** Ends what the store has opened. What is asked of it afterwards is rejected. */
  close(): void
}

/** Expired records leave the memory within a minute. */
const SWEEP_INTERVAL_MS = 20_000

/**
 * A store for one process, for development and tests.
 *
 * @throws TypeError for any option: it has none.
 */
export function memoryStore(options: Readonly<Record<string, never>> = {}): Store {
  parseOptions('memoryStore options', optionsObject({}), options)
  const consumed = new Map<string, number>()
  const kept = new Map<string, records.IdempotencyRecord>()
  const health = watchHealth()
  let fence = 0
  let closed = false

  // The monotonic clock: a wall clock that is set must neither end nor stretch a lease.
  const sweeper = setInterval(() => sweep(performance.now()), SWEEP_INTERVAL_MS)
  sweeper.unref()

  function sweep(now: number): void {
    for (const [id, expiresAt] of consumed) if (expiresAt <= now) consumed.delete(id)
    for (const [key, record] of kept) if (record.expiresAt <= now) kept.delete(key)
  }

  /** Above every fence of this process, and of those before it. */
  function leastFence(): number {
    fence = Math.max(fence + 1, Date.now() * 1000)
    return fence
  }

  function apply<T>(key: string, step: records.Step<T>): T {
    if (step.record === undefined) kept.delete(key)
    else kept.set(key, step.record)
    return step.answer
  }

  /** A closed store fails as one out of reach does: by rejecting. */
  async function open<T>(work: (now: number) => T): Promise<T> {
    if (closed) throw new ServiceAuthError('unavailable', 'the memory store is closed')
    health.up()
    return work(performance.now())
  }

  const keeper = createRecordKeeper({
    look: (key) =>
      open((now) => {
        const record = records.alive(kept.get(key), now)
        return record && { record, now }
      }),
    replace: (key, seen, next) =>
      open((now) => {
        // Each call of a run puts another object in its place.
        const isAsSeen = records.alive(kept.get(key), now) === seen.record
        if (isAsSeen) kept.set(key, next)
        return isAsSeen
      }),
  })

  return {
    ...keeper,
    consume: (id, ttlMs) =>
      open((now) => {
        if ((consumed.get(id) ?? now) > now) return false
        consumed.set(id, now + ttlMs)
        return true
      }),
    reserve: (request) =>
      open((now) => {
        const moment = { now, leastFence: leastFence() }
        return apply(request.key, records.reserve(kept.get(request.key), request, moment))
      }),
    renew: (run) => open((now) => apply(run.key, records.renew(kept.get(run.key), run, now))),
    settle: (run, ending) =>
      open((now) => apply(run.key, records.settle(kept.get(run.key), { run, ending }, now))),
    check: () => open(() => []),
    health: health.read,
    close() {
      closed = true
      health.down('closed')
      clearInterval(sweeper)
      consumed.clear()
      kept.clear()
    },
  }
}
