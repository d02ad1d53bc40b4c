import { AsyncResource } from 'node:async_hooks'
import type { Level, Line } from './line.js'

/** The log entry about lines that were left out. */
export interface LeftOut {
  readonly type: 'left_out'
  readonly reason: string
  /** Absent if several callers share the count. */
  readonly caller?: string
  /** Present for lines about a key set. */
  readonly jwksUri?: string
  readonly lines: number
}

export interface BurstOptions {
  readonly burst: number
  readonly everyMs: number
  /** Called once for the lines that were left out since the last written one. */
  report(level: Level, leftOut: LeftOut): void
}

export interface Bursts {
  /** Returns whether to write the line. */
  admit(line: Line): boolean
  /** Reports the lines that were left out so far, and stops the timer. */
  flush(): void
}

/** Limits memory: an unapproved `sub` is chosen by the caller, so their number is unlimited. */
const MAX_COUNTS = 1000

/** A count of lines, stored until `everyMs` after the last written one. */
interface Count {
  readonly level: Level
  readonly about: Omit<LeftOut, 'type' | 'lines'>
  /** The times of the lines written in the last `everyMs`; at most `burst`. */
  readonly writtenAt: number[]
  endsAt: number
  leftOut: number
}

/**
 * Admits at most `burst` lines per reason and caller in any `everyMs`. Once it has left one out, it
 * leaves out all until `everyMs` after the last written one, then reports their number. If there are
 * `MAX_COUNTS` counts, further callers of a reason share one.
 */
export function limitBursts({ burst, everyMs, report }: BurstOptions): Bursts {
  // Ordered by `endsAt`: a written line moves its count to the end.
  const counts = new Map<string, Count>()
  let timer: NodeJS.Timeout | undefined

  function countOf(line: Line): [name: string, Count] {
    const { reason, caller, jwksUri } = line
    const name = `${reason} ${caller ?? jwksUri ?? ''}`
    const own = counts.get(name)
    if (own !== undefined) return [name, own]
    const shared = counts.get(reason)
    if (shared !== undefined) return [reason, shared]
    if (counts.size >= MAX_COUNTS) return [reason, newCount(line.level, { reason })]
    const about = { reason, ...(caller !== undefined && { caller }), ...(jwksUri && { jwksUri }) }
    return [name, newCount(line.level, about)]
  }

  const wakeAt = AsyncResource.bind((endsAt: number, now: number): void => {
    timer = setTimeout(onWake, Math.ceil(endsAt - now))
    timer.unref()
  })

  function onWake(): void {
    const now = performance.now()
    timer = undefined
    closeUntil(now)
    const next = counts.values().next().value
    if (next !== undefined) wakeAt(next.endsAt, now)
  }

  function closeUntil(now: number): void {
    for (const [name, { endsAt, level, about, leftOut }] of counts) {
      if (endsAt > now) return
      counts.delete(name)
      if (leftOut > 0) report(level, { type: 'left_out', ...about, lines: leftOut })
    }
  }

  function noteWritten(name: string, count: Count, now: number): void {
    count.writtenAt.push(now)
    count.endsAt = now + everyMs
    counts.delete(name)
    counts.set(name, count)
    if (timer === undefined) wakeAt(count.endsAt, now)
  }

  return {
    admit(line) {
      const now = performance.now()
      closeUntil(now)
      const [name, count] = countOf(line)
      const { writtenAt } = count
      while (writtenAt[0] !== undefined && writtenAt[0] + everyMs <= now) writtenAt.shift()
      if (count.leftOut > 0 || writtenAt.length >= burst) {
        count.leftOut += 1
        return false
      }
      noteWritten(name, count, now)
      return true
    },
    flush() {
      clearTimeout(timer)
      timer = undefined
      closeUntil(Number.POSITIVE_INFINITY)
    },
  }
}

const newCount = (level: Level, about: Count['about']): Count => ({
  level,
  about,
  writtenAt: [],
  endsAt: 0,
  leftOut: 0,
})
