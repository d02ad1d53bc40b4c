/** A clock that moves only by `advance`. */
export interface ManualClock {
  (): number
  advance(seconds: number): void
}

export function manualClock(startMs: number = Date.UTC(2027, 0, 1)): ManualClock {
  let now = startMs
  const read = (): number => now
  return Object.assign(read, {
    advance(seconds: number) {
      now += Math.round(seconds * 1000)
    },
  })
}
