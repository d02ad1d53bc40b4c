const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 30_000

/** The failures since the last success, and when the next attempt may start, in ms of the caller's clock. */
export interface BackOff {
  readonly count: number
  readonly retryAt: number
}

/** The back-off after one more failure. `jitter` is a random number from 0 to 1. */
export function afterFailure(
  earlier: BackOff | undefined,
  { at, jitter }: { readonly at: number; readonly jitter: number },
  maxMs: number = MAX_DELAY_MS,
): BackOff {
  const count = (earlier?.count ?? 0) + 1
  return { count, retryAt: at + growingDelayMs(count, { firstMs: FIRST_DELAY_MS, maxMs }, jitter) }
}

/** Whether the next attempt must still wait. A wait longer than the maximum does not count: the clock was set back. */
export const isBackingOff = (backOff: BackOff | undefined, now: number): boolean =>
  backOff !== undefined && now < backOff.retryAt && backOff.retryAt - now <= MAX_DELAY_MS

/**
 * Returns the milliseconds to wait after this many failed attempts. The delay doubles with each attempt, up
 * to `maxMs`. The result is a random time between half of the delay and all of it, so that callers that fail
 * together spread out. `random` is from 0 to 1.
 */
export function growingDelayMs(
  attempts: number,
  { firstMs, maxMs }: { readonly firstMs: number; readonly maxMs: number },
  random: number = Math.random(),
): number {
  const wholeMs = Math.min(firstMs * 2 ** (attempts - 1), maxMs)
  return Math.round((wholeMs * (1 + random)) / 2)
}
