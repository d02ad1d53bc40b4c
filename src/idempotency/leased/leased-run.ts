import { randomUUID } from 'node:crypto'
import type { RunEnd } from '../../base/decision/idempotency-event.js'
import { callStore } from '../../base/decision/store-event.js'
import { SignalOf } from '../../base/lazy-signal.js'
import type { HandlerEnding, RunOnce } from '../run.js'
import type { Ending, IdempotencyStore, Reservation } from './idempotency-store.js'
import { startLease } from './lease.js'

/** How a run holds its key. Times in ms. */
interface LeaseOptions {
  readonly leaseMs: number
  /** After this time the lease is no longer renewed. */
  readonly maxRunMs: number
  /** Whether the key may be taken over from a run that ended without a result. */
  readonly rerunAbandoned: boolean
}

/**
 * Runs handlers under leases: reserves the key, renews the lease until the answer is complete, and stores the answer.
 * `onFailure` is called when the store fails during a run: its caller gets the answer all the same.
 */
export function createLeasedRun(
  store: IdempotencyStore,
  { leaseMs, maxRunMs, rerunAbandoned }: LeaseOptions,
  onFailure: () => void,
): RunOnce {
  async function reporting<T>(call: Promise<T>): Promise<T> {
    try {
      return await call
    } catch (error) {
      onFailure()
      throw error
    }
  }

  return async ({ recordId, fingerprint, retentionMs }, work) => {
    const requested = { recordId, owner: randomUUID(), fingerprint, leaseMs, retentionMs }
    const requestedAt = performance.now()
    let reservation: Reservation
    try {
      reservation = await callStore('reserve', () =>
        store.reserve({ ...requested, rerunAbandoned }),
      )
    } catch {
      return { outcome: 'undone', reason: 'store_unavailable' }
    }
    if (reservation.outcome !== 'reserved') return reservation
    const { fence } = reservation
    const run = { ...requested, fence }
    const lease = startLease({ leaseMs, maxRunMs }, requestedAt, () =>
      reporting(callStore('renew', () => store.renew(run))),
    )

    /** Never rejects, because a client gets its answer even if the record is lost. */
    async function settle(ending: Ending, end: RunEnd): Promise<RunEnd> {
      lease.stopRenewing()
      try {
        const isSettled = await reporting(callStore('settle', () => store.settle(run, ending)))
        return isSettled ? end : 'key_lost'
      } catch {
        return 'result_lost'
      }
    }

    async function endBy(ending: HandlerEnding): Promise<RunEnd> {
      switch (ending.type) {
        case 'answered':
          return ending.result === undefined
            ? settle({ type: 'not_stored' }, 'result_too_large')
            : settle({ type: 'finished', result: ending.result }, 'result_kept')
        case 'released':
          return settle({ type: 'released' }, 'released')
        case 'aborted':
          await lease.abandon()
          return settle({ type: 'abandoned' }, 'abandoned')
      }
    }

    let ending: HandlerEnding
    try {
      const handlerRun = { fence, answered: lease.stopRenewing }
      ending = await work(Object.assign(new SignalOf(lease), handlerRun))
    } catch (error) {
      // The handler may have had an effect.
      await endBy({ type: 'aborted' })
      throw error
    }
    return { outcome: 'answered', end: await endBy(ending) }
  }
}
