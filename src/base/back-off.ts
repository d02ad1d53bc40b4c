/** The step doubles with each failure. The wait is half of it, plus as much as half of it at random. */
const FIRST_STEP_MS = 1000
const LAST_STEP_MS = 30_000
/** From here on the step is the last one: more doubling would only make the number large. */
const MAX_DOUBLINGS = 16

/** The failures since the last success, and when the next attempt may start, in ms of a clock. */
export interface BackOff {
  readonly count: number
  readonly retryAt: number
}

/** The back-off after one more failure. `jitter` is a random number from 0 to 1. */
export function afterFailure(
  earlier: BackOff | undefined,
  { at, jitter }: { readonly at: number; readonly jitter: number },
  lastStepMs: number = LAST_STEP_MS,
): BackOff {
  const failures = earlier?.count ?? 0
  const step = Math.min(lastStepMs, FIRST_STEP_MS * 2 ** Math.min(failures, MAX_DOUBLINGS))
  return { count: failures + 1, retryAt: at + (step / 2) * (1 + jitter) }
}

/** A wait longer than the longest means that the clock was set back: it does not count. */
export const isBackingOff = (backOff: BackOff | undefined, now: number): boolean =>
  backOff !== undefined && now < backOff.retryAt && backOff.retryAt - now <= LAST_STEP_MS

/**
 * Milliseconds to wait after this many failed attempts: twice as long after each, and between half and
 * all of it at random, so that callers that fail together spread out. `random` is from 0 to 1.
 */
export function growingDelayMs(
  attempts: number,
  { firstMs, maxMs }: { readonly firstMs: number; readonly maxMs: number },
  random: number = Math.random(),
): number {
  const wholeMs = Math.min(firstMs * 2 ** Math.min(attempts - 1, MAX_DOUBLINGS), maxMs)
  return Math.round((wholeMs * (1 + random)) / 2)
}
