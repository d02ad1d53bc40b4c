import { AsyncResource } from 'node:async_hooks'
import type { Level, Line } from './line.js'

/** The log entry about suppressed lines. */
export interface Suppressed {
  readonly type: 'left_out'
  readonly reason: string
  /** Absent if several callers share the count. */
  readonly caller?: string
  /** Present for lines about a key set. */
  readonly jwksUri?: string
  readonly lines: number
}

interface BurstOptions {
  readonly burst: number
  readonly everyMs: number
  /** Called once when a suppression ends, with the number of lines that it suppressed. */
  report(level: Level, suppressed: Suppressed): void
}

export interface RateLimiter {
  /** Returns whether to write the line. */
  admit(line: Line): boolean
  /** Reports the lines suppressed so far, and stops the timer. */
  flush(): void
}

/** Limits memory: a caller that is not approved chooses its `sub`, so the number of callers is unlimited. */
const MAX_COUNTS = 1000

/** A count of lines, stored until `everyMs` after the last written one. */
interface Count {
  readonly level: Level
  readonly about: Omit<Suppressed, 'type' | 'lines'>
  /** The times of the lines written in the last `everyMs`; at most `burst`. */
  readonly writtenAt: number[]
  endsAt: number
  suppressed: number
}

/**
 * Admits at most `burst` lines per reason and caller in any `everyMs`. Once it has suppressed one, it
 * suppresses all until `everyMs` after the last written one, then reports their number. If there are
 * `MAX_COUNTS` counts, further callers of a reason share one.
 */
export function rateLimit({ burst, everyMs, report }: BurstOptions): RateLimiter {
  // Ordered by `endsAt`: a written line moves its count to the end.
  const counts = new Map<string, Count>()
  let timer: NodeJS.Timeout | undefined

  function countOf(line: Line): [name: string, Count] {
    const { reason, caller, jwksUri } = line
    const name = `${reason} ${caller ?? jwksUri ?? ''}`
    const separate = counts.get(name)
    if (separate !== undefined) return [name, separate]
    const shared = counts.get(reason)
    if (shared !== undefined) return [reason, shared]
    if (counts.size >= MAX_COUNTS) return [reason, newCount(line.level, { reason })]
    const about = { reason, ...(caller !== undefined && { caller }), ...(jwksUri && { jwksUri }) }
    return [name, newCount(line.level, about)]
  }

  const startTimer = AsyncResource.bind((endsAt: number, now: number): void => {
    timer = setTimeout(onTimer, Math.ceil(endsAt - now))
    timer.unref()
  })

  function onTimer(): void {
    const now = performance.now()
    timer = undefined
    expireUntil(now)
    const next = counts.values().next().value
    if (next !== undefined) startTimer(next.endsAt, now)
  }

  function expireUntil(now: number): void {
    for (const [name, { endsAt, level, about, suppressed }] of counts) {
      if (endsAt > now) return
      counts.delete(name)
      if (suppressed > 0) report(level, { type: 'left_out', ...about, lines: suppressed })
    }
  }

  function recordWritten(name: string, count: Count, now: number): void {
    count.writtenAt.push(now)
    count.endsAt = now + everyMs
    counts.delete(name)
    counts.set(name, count)
    if (timer === undefined) startTimer(count.endsAt, now)
  }

  return {
    admit(line) {
      const now = performance.now()
      expireUntil(now)
      const [name, count] = countOf(line)
      const { writtenAt } = count
      while (writtenAt[0] !== undefined && writtenAt[0] + everyMs <= now) writtenAt.shift()
      if (count.suppressed > 0 || writtenAt.length >= burst) {
        count.suppressed += 1
        return false
      }
      recordWritten(name, count, now)
      return true
    },
    flush() {
      clearTimeout(timer)
      timer = undefined
      expireUntil(Number.POSITIVE_INFINITY)
    },
  }
}

const newCount = (level: Level, about: Count['about']): Count => ({
  level,
  about,
  writtenAt: [],
  endsAt: 0,
  suppressed: 0,
})
