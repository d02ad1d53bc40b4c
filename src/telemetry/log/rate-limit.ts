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
  /** Called at the end of a period, with the number of lines that it suppressed. */
  report(level: Level, suppressed: Suppressed): void
}

export interface RateLimiter {
  /** Returns whether to write the line. */
  admit(line: Line): boolean
  /** Ends the period: reports the lines suppressed so far, and stops the timer. */
  flush(): void
}

/** Limits memory: a caller that is not approved chooses its `sub`, so the number of callers is unlimited. */
const MAX_COUNTS = 1000

interface Count {
  readonly level: Level
  readonly about: Omit<Suppressed, 'type' | 'lines'>
  written: number
  suppressed: number
}

/**
 * Admits at most `burst` lines per reason and caller in a period of `everyMs`, which begins with its first line, and
 * at its end reports how many it suppressed. If there are `MAX_COUNTS` counts, further callers of a reason share one.
 */
export function rateLimit({ burst, everyMs, report }: BurstOptions): RateLimiter {
  const counts = new Map<string, Count>()
  let timer: NodeJS.Timeout | undefined

  // Bound, because the reports belong to no request.
  const begin = AsyncResource.bind((): void => {
    timer = setTimeout(end, everyMs)
    timer.unref()
  })

  function end(): void {
    clearTimeout(timer)
    timer = undefined
    const ended = [...counts.values()]
    counts.clear()
    for (const { level, about, suppressed } of ended) {
      if (suppressed > 0) report(level, { type: 'left_out', ...about, lines: suppressed })
    }
  }

  function countOf({ level, reason, caller, jwksUri }: Line): Count {
    const name = `${reason} ${caller ?? jwksUri ?? ''}`
    const known = counts.get(name) ?? counts.get(reason)
    if (known !== undefined) return known
    const isShared = counts.size >= MAX_COUNTS
    const about = { reason, ...(caller !== undefined && { caller }), ...(jwksUri && { jwksUri }) }
    const count = { level, about: isShared ? { reason } : about, written: 0, suppressed: 0 }
    counts.set(isShared ? reason : name, count)
    return count
  }

  return {
    admit(line) {
      if (timer === undefined) begin()
      const count = countOf(line)
      const isAdmitted = count.written < burst
      count[isAdmitted ? 'written' : 'suppressed'] += 1
      return isAdmitted
    },
    flush: end,
  }
}
