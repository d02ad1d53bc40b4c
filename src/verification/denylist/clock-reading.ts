/**
 * A moment on both clocks. The monotonic one may stand still while the machine sleeps, the wall clock
 * may be set back.
 */
export interface Moment {
  /** Milliseconds since the epoch. */
  readonly wallMs: number
  /** Milliseconds since the process began. */
  readonly monotonicMs: number
}

export const currentMoment = (): Moment => ({
  wallMs: Date.now(),
  monotonicMs: performance.now(),
})

/** How long ago it was, by the clock that says more. */
export const elapsedMs = (since: Moment, now: Moment): number =>
  Math.max(0, now.wallMs - since.wallMs, now.monotonicMs - since.monotonicMs)
