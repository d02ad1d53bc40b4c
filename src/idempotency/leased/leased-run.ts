import { randomUUID } from 'node:crypto'
import type { RunEnd } from '../../base/decision/idempotency-event.js'
import { callStore } from '../../base/decision/store-event.js'
import { LazySignal, SignalOf } from '../../base/lazy-signal.js'
import type { HandlerEnding, RunOnce } from '../run.js'
import type { Ending, IdempotencyStore, Reservation } from './idempotency-store.js'

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

/** The lease of a run, renewed while its handler works. */
interface Lease {
  /** Aborts when the lease is lost, or has expired without a confirmed renewal. */
  readonly signal: AbortSignal
  stopRenewing(): void
  /**
   * Ends the run without a result: stops renewing and aborts the signal. Resolves once no renewal is in progress
   * that could extend the lease of a run that has ended.
   */
  abandon(): Promise<void>
}

const RENEWALS_PER_LEASE = 3

/**
 * Renews a lease that was requested at `reservedAt`, from `performance.now`. `renew` resolves with whether
 * the key still belongs to the run, and rejects if that is unknown. The timer never holds the process open.
 */
function startLease(
  { leaseMs, maxRunMs }: Pick<LeaseOptions, 'leaseMs' | 'maxRunMs'>,
  reservedAt: number,
  renew: () => Promise<boolean>,
): Lease {
  let leasedUntil = reservedAt + leaseMs
  let isLost = false
  let renewal: Promise<void> | undefined
  const abort = new LazySignal()
  let timer: NodeJS.Timeout | undefined = setInterval(tick, leaseMs / RENEWALS_PER_LEASE)
  timer.unref()

  function stopRenewing(): void {
    clearInterval(timer)
    timer = undefined
  }

  function lose(): void {
    isLost = true
    abort.abort()
  }

  function tick(): void {
    const now = performance.now()
    if (now >= leasedUntil) lose()
    const mayRenew = now - reservedAt < maxRunMs
    if (mayRenew) {
      renewal ??= renewOnce(now).finally(() => {
        renewal = undefined
      })
    }
    // Otherwise a run that never ends would keep its timer forever.
    if (!mayRenew && isLost) stopRenewing()
  }

  async function renewOnce(requestedAt: number): Promise<void> {
    try {
      if (await renew()) leasedUntil = requestedAt + leaseMs
      // Without a timer the run has ended: a refusal of its late renewal does not mean that the lease was lost.
      else if (timer !== undefined) {
        stopRenewing()
        lose()
      }
    } catch {
      // The store cannot be reached: the next renewal tries again, unless the lease has expired.
    }
  }

  return Object.assign(abort, {
    stopRenewing,
    async abandon() {
      stopRenewing()
      lose()
      await renewal
    },
  })
}
