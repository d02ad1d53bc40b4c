/** How long a run is trusted, and for how long it may go on asking for more. */
export interface LeaseTimes {
  readonly leaseMs: number
  /** After this no more is asked for, unless the response has begun to flow. */
  readonly maxRunMs: number
}

const RENEWALS_PER_LEASE = 3

/** Keeps a run's key while its handler works. */
export class Lease {
  readonly #times: LeaseTimes
  readonly #reservedAt: number
  readonly #renew: () => Promise<boolean>
  #timer: NodeJS.Timeout | undefined
  /** Made when it is first asked for: few handlers do. */
  #controller: AbortController | undefined = undefined
  #heldUntil: number
  #isLost = false
  #isFlowing = false
  #isRenewing = false

  /**
   * Renews a lease that was asked for at `reservedAt` (of `performance.now`). `renew` says whether
   * the key is still held, and rejects when it cannot tell. The timer never holds the process open.
   */
  constructor(times: LeaseTimes, reservedAt: number, renew: () => Promise<boolean>) {
    this.#times = times
    this.#reservedAt = reservedAt
    this.#renew = renew
    this.#heldUntil = reservedAt + times.leaseMs
    this.#start()
  }

  /** Aborts when the lease is lost, or may be. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#isLost) this.#controller.abort()
    return this.#controller.signal
  }

  /** The handler has sent its first byte: from now on it is renewed for as long as it flows. */
  flow(): void {
    this.#isFlowing = true
    if (this.#timer === undefined) this.#start()
  }

  /** No more renewals. */
  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** The run is over without a result: no more renewals, and whatever is still at work is told. */
  abandon(): void {
    this.stop()
    this.#lose()
  }

  #start(): void {
    this.#timer = setInterval(() => this.#tick(), this.#times.leaseMs / RENEWALS_PER_LEASE)
    this.#timer.unref()
  }

  #lose(): void {
    this.#isLost = true
    this.#controller?.abort()
  }

  #tick(): void {
    const now = performance.now()
    if (now >= this.#heldUntil && !this.#isLost) this.#lose()
    const isAllowed = this.#isFlowing || now - this.#reservedAt < this.#times.maxRunMs
    if (isAllowed && !this.#isRenewing) void this.#renewOnce(now)
    // Nobody may ever end it: what is not renewed any more needs no timer.
    if (!isAllowed && this.#isLost) this.stop()
  }

  async #renewOnce(askedAt: number): Promise<void> {
    this.#isRenewing = true
    try {
      if (await this.#renew()) this.#heldUntil = askedAt + this.#times.leaseMs
      else {
        this.stop()
        this.#lose()
      }
    } catch {
      // The next one may reach the store again, and the lease lasts until then or does not.
    } finally {
      this.#isRenewing = false
    }
  }
}
