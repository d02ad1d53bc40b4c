import type { Timing } from '../../../../src/migration/run/records.js'

/** Time that passes only when somebody waits or asks, and what happens in it. */
export interface SimulatedTime extends Timing {
  /** Lets so much time pass. */
  pass(ms: number): void
  at(afterMs: number, happens: () => void): void
  every(ms: number, happens: () => void): void
}

/** A run that waits forever would hold the process. */
const MAX_PASSES = 100_000

export function simulatedTime(): SimulatedTime {
  let now = 0
  const events: { readonly at: number; readonly happens: () => void; readonly everyMs?: number }[] =
    []

  let passed = 0

  function pass(ms: number): void {
    passed += 1
    if (passed > MAX_PASSES) throw new Error(`time passes without end, by ${ms} ms each time`)
    const until = now + ms
    for (;;) {
      events.sort((one, other) => one.at - other.at)
      const next = events[0]
      if (next === undefined || next.at > until) break
      events.shift()
      now = Math.max(now, next.at)
      next.happens()
      if (next.everyMs !== undefined) events.push({ ...next, at: now + next.everyMs })
    }
    now = until
  }

  return {
    pass,
    at: (afterMs, happens) => void events.push({ at: now + afterMs, happens }),
    every: (everyMs, happens) => void events.push({ at: now + everyMs, happens, everyMs }),
    now: () => 1_800_000_000_000 + now,
    elapsedMs: () => now,
    async sleep(ms, signal) {
      signal.throwIfAborted()
      pass(ms)
    },
  }
}
