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
  /** Told once after a window in which lines were left out. */
  report(level: Level, leftOut: LeftOut): void
}

export interface Bursts {
  /** Whether the line is to be written. */
  admit(line: Line): boolean
  /** Reports what was left out so far, and stops the timer. */
  flush(): void
}

/** A `sub` that is not approved is a text of the caller's choice: there may be any number of them. */
const MAX_WINDOWS = 1000

interface Window {
  readonly endsAt: number
  readonly level: Level
  readonly about: Omit<LeftOut, 'type' | 'lines'>
  lines: number
}

/**
 * Admits at most `burst` lines of one reason and caller in a window, which begins with the first of
 * them. While there are `MAX_WINDOWS`, further callers of a reason share one.
 */
export function limitBursts({ burst, everyMs, report }: BurstOptions): Bursts {
  // All windows are of one length: the first to be opened is the first to end.
  const windows = new Map<string, Window>()
  let timer: NodeJS.Timeout | undefined

  function windowOf(line: Line, now: number): Window {
    const own = windows.get(nameOf(line))
    if (own !== undefined) return own
    if (windows.size < MAX_WINDOWS) return open(line, now)
    const shared = { level: line.level, reason: line.reason }
    return windows.get(nameOf(shared)) ?? open(shared, now)
  }

  function open(line: Omit<Line, 'message'>, now: number): Window {
    const { level, reason, caller, jwksUri } = line
    const about = { reason, ...(caller !== undefined && { caller }), ...(jwksUri && { jwksUri }) }
    const window = { endsAt: now + everyMs, level, about, lines: 0 }
    windows.set(nameOf(line), window)
    if (timer === undefined) wakeAt(window.endsAt, now)
    return window
  }

  const wakeAt = AsyncResource.bind((endsAt: number, now: number): void => {
    timer = setTimeout(onWake, Math.ceil(endsAt - now))
    timer.unref()
  })

  function onWake(): void {
    const now = performance.now()
    timer = undefined
    closeUntil(now)
    const next = windows.values().next().value
    if (next !== undefined) wakeAt(next.endsAt, now)
  }

  function closeUntil(now: number): void {
    for (const [name, { endsAt, level, about, lines }] of windows) {
      if (endsAt > now) return
      windows.delete(name)
      if (lines > burst) report(level, { type: 'left_out', ...about, lines: lines - burst })
    }
  }

  return {
    admit(line) {
      const now = performance.now()
      closeUntil(now)
      const window = windowOf(line, now)
      window.lines += 1
      return window.lines <= burst
    },
    flush() {
      clearTimeout(timer)
      timer = undefined
      closeUntil(Number.POSITIVE_INFINITY)
    },
  }
}

const nameOf = ({ reason, caller, jwksUri }: Omit<Line, 'message'>): string =>
  `${reason} ${caller ?? jwksUri ?? ''}`
