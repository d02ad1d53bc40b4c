const MAX_FETCHES = 2
const WINDOW_MS = 30_000

/** What tokens with an unknown `kid` may cause: 2 fetches in any 30 s, for the whole set. */
export interface RefetchBudget {
  /** Whether one more fetch may start at `now`; if so, it counts. */
  take(now: number): boolean
}

export function createRefetchBudget(): RefetchBudget {
  let taken: number[] = []
  return {
    take(now) {
      // A moment in the future is left over from a clock that has been set back.
      taken = taken.filter((moment) => moment <= now && now - moment < WINDOW_MS)
      if (taken.length >= MAX_FETCHES) return false
      taken.push(now)
      return true
    },
  }
}
