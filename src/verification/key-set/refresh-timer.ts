/** So that the timer does not fire in a loop while the clock stands still. */
const LEAST_DELAY_MS = 20
/** The delay when the clock throws or returns no number. */
const BROKEN_CLOCK_DELAY_MS = 5000
/** The longest delay of Node's timers. */
const MOST_DELAY_MS = 2 ** 31 - 1

/** One timer that never holds the process open. */
export interface WakeUp {
  /** Sets the timer, in place of an earlier one. */
  in(delayMs: () => number): void
  cancel(): void
}

export function createWakeUp(wake: () => void): WakeUp {
  let timer: NodeJS.Timeout | undefined
  const ring = (): void => {
    try {
      wake()
    } catch {
      wakeUp.in(() => BROKEN_CLOCK_DELAY_MS)
    }
  }
  const wakeUp: WakeUp = {
    in(delayMs) {
      clearTimeout(timer)
      timer = setTimeout(ring, Math.min(MOST_DELAY_MS, Math.max(LEAST_DELAY_MS, safely(delayMs))))
      timer.unref()
    },
    cancel() {
      clearTimeout(timer)
    },
  }
  return wakeUp
}

function safely(delayMs: () => number): number {
  try {
    return delayMs()
  } catch {
    return BROKEN_CLOCK_DELAY_MS
  }
}
