const MAX_FETCHES = 2
const WINDOW_MS = 30_000

/** The fetches that tokens with an unknown `kid` may cause: 2 in any 30 s, for the whole set. */
export interface RefetchBudget {
  /** Whether one more fetch may start at `now`; if so, it counts. */
  take(now: number): boolean
}

/** `onExhausted` is called at the first refusal after a fetch that was allowed. */
export function createRefetchBudget(onExhausted: () => void): RefetchBudget {
  let taken: number[] = []
  let isExhausted = false
  return {
    take(now) {
      // The clock may have been set back: what was taken in the future must not count for ever.
      taken = taken.filter((moment) => moment <= now && now - moment < WINDOW_MS)
      const isRefused = taken.length >= MAX_FETCHES
      if (isRefused && !isExhausted) onExhausted()
      isExhausted = isRefused
      if (!isRefused) taken.push(now)
      return !isRefused
    },
  }
}
