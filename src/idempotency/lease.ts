/** How long a run is trusted, and for how long it may go on asking for more. */
export interface LeaseTimes {
  readonly leaseMs: number
  /** After this no more is asked for, unless the response has begun to flow. */
  readonly maxRunMs: number
}

/** Keeps a run's key while its handler works. */
export interface Lease {
  /** Aborts when the lease is lost, or may be. */
  readonly signal: AbortSignal
  /** The handler has sent its first byte: from now on it is renewed for as long as it flows. */
  flow(): void
  /** No more renewals. */
  stop(): void
  /** The run is over without a result: no more renewals, and whatever is still at work is told. */
  abandon(): void
}

const RENEWALS_PER_LEASE = 3

/**
 * Renews a lease that was asked for at `reservedAt` (of `performance.now`). `renew` says whether the
 * key is still held, and rejects when it cannot tell. The timer never holds the process open.
 */
export function keepLease(
  { leaseMs, maxRunMs }: LeaseTimes,
  reservedAt: number,
  renew: () => Promise<boolean>,
): Lease {
  // Made when it is first asked for: few handlers do.
  let controller: AbortController | undefined
  let isLost = false
  let isFlowing = false
  let isRenewing = false
  let heldUntil = reservedAt + leaseMs

  function lose(): void {
    isLost = true
    controller?.abort()
  }

  async function renewOnce(askedAt: number): Promise<void> {
    isRenewing = true
    try {
      if (await renew()) heldUntil = askedAt + leaseMs
      else {
        lose()
        clearInterval(timer)
      }
    } catch {
      // The next one may reach the store again, and the lease lasts until then or does not.
    } finally {
      isRenewing = false
    }
  }

  const timer = setInterval(() => {
    const now = performance.now()
    if (now >= heldUntil && !isLost) lose()
    const isAllowed = isFlowing || now - reservedAt < maxRunMs
    if (isAllowed && !isRenewing) void renewOnce(now)
  }, leaseMs / RENEWALS_PER_LEASE)
  timer.unref()

  return {
    get signal() {
      controller ??= new AbortController()
      if (isLost) controller.abort()
      return controller.signal
    },
    flow() {
      isFlowing = true
    },
    stop() {
      clearInterval(timer)
    },
    abandon() {
      clearInterval(timer)
      lose()
    },
  }
}
