import { setTimeout as sleep } from 'node:timers/promises'

/** The clocks and the timer of a run. */
export interface Timing {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Milliseconds on a monotonic clock. */
  readonly elapsedMs: () => number
  /** Rejects with the signal's reason once it aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

export const SYSTEM_TIMING: Timing = {
  now: Date.now,
  elapsedMs: () => performance.now(),
  async sleep(ms, signal) {
    signal.throwIfAborted()
    try {
      await sleep(ms, undefined, { signal })
    } catch (error) {
      signal.throwIfAborted()
      throw error
    }
  },
}
