import { LazySignal } from '../../base/lazy-signal.js'

interface LeaseTimes {
  readonly leaseMs: number
  /** After this time the lease is no longer renewed. */
  readonly maxRunMs: number
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
export function startLease(
  { leaseMs, maxRunMs }: LeaseTimes,
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
