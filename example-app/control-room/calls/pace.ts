/** How many calls are due, at a rate: exact over time, however late it is asked. */
export interface Pace {
  due(now: number): number
}

/** Of a time without a look no more than this is made up for. */
const MAX_ARREARS_MS = 100

export function createPace(callsPerSecond: number, startedAt: number): Pace {
  let askedAt = startedAt
  let arrears = 0
  return {
    due(now) {
      arrears += (Math.min(now - askedAt, MAX_ARREARS_MS) * callsPerSecond) / 1000
      askedAt = now
      const calls = Math.floor(arrears)
      arrears -= calls
      return calls
    },
  }
}
