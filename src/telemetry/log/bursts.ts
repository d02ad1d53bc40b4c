import { AsyncResource } from 'node:async_hooks'
import type { Level, Line } from './line.js'

/** What a log is told of the lines that it did not get. */
export interface LeftOut {
  readonly type: 'left_out'
  readonly reason: string
  /** Absent where several callers share the lines. */
  readonly caller?: string
  /** Of a key set. */
  readonly jwksUri?: string
  readonly lines: number
}

export interface BurstOptions {
  readonly burst: number
  readonly everyMs: number
  /** Told once for the lines that were left out since the last that was written. */
  report(level: Level, leftOut: LeftOut): void
}

export interface Bursts {
  /** Whether the line is to be written. */
  admit(line: Line): boolean
  /** Reports what was left out so far, and stops the timer. */
  flush(): void
}

/** A `sub` that is not approved is a text of the caller's choice: there may be any number of them. */
const MAX_COUNTS = 1000

/** Lives until `everyMs` after the last line that was written. */
interface Count {
  readonly level: Level
  readonly about: Omit<LeftOut, 'type' | 'lines'>
  /** When the lines of the last `everyMs` were written: at most `burst`. */
  readonly writtenAt: number[]
  endsAt: number
  leftOut: number
}

/**
 * Admits at most `burst` lines of one reason and caller in any `everyMs`. Once it has left one out, it
 * leaves out all until `everyMs` after the last that was written; then it reports how many those were.
 * While there are `MAX_COUNTS`, further callers of a reason share one.
 */
export function limitBursts({ burst, everyMs, report }: BurstOptions): Bursts {
  // In the order of their ends: each line that is written puts its count last.
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
