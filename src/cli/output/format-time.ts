import { usageError } from '../frame/command-failure.js'

const UNITS = [
  ['days', 86_400],
  ['h', 3600],
  ['min', 60],
] as const

/** Formats seconds for people, in whole units of the largest unit that fits at least twice. */
export function formatDuration(seconds: number): string {
  const whole = Math.round(seconds)
  const [unit, size] = UNITS.find(([, size]) => whole >= 2 * size) ?? ['s', 1]
  return `${Math.floor(whole / size)} ${unit}`
}

/** Whole days from `nowMs` until a time in seconds since the epoch; negative once it has passed. */
export const daysUntil = (seconds: number, nowMs: number): number =>
  Math.floor((seconds - nowMs / 1000) / 86_400)

/** Formats a time in seconds since the epoch, in UTC. */
export function formatTime(seconds: number): string {
  const moment = new Date(seconds * 1000)
  return Number.isFinite(moment.getTime())
    ? moment.toISOString().replace('.000Z', 'Z')
    : String(seconds)
}

/** The value of a denylist entry, which is a moment for `issued-before`. */
export const formatValue = (value: string | number): string =>
  typeof value === 'number' ? formatTime(value) : value

/** The end of a denylist entry. */
export const formatUntil = (until: number | null): string =>
  until === null ? 'forever' : formatTime(until)

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

const DURATION = /^(\d{1,9})(ms|s|m|h|d)$/

interface DurationRange {
  readonly minMs: number
  readonly maxMs: number
}

/**
 * Parses a text such as `250ms`, `5s`, `15m`, `2h` or `7d` into milliseconds. `name` is the name of
 * the option, such as `--timeout`.
 *
 * @throws CommandFailure (2) if the text has another form or is out of range.
 */
export function parseDuration(name: string, text: string, range: DurationRange): number {
  const [, count, unit] = DURATION.exec(text) ?? []
  if (count === undefined || unit === undefined) {
    throw usageError(
      'usage',
      `${name} must be a number and a unit, such as 250ms, 5s, 15m, 2h or 7d`,
    )
  }
  const ms = Number(count) * UNITS_MS[unit as keyof typeof UNITS_MS]
  if (ms < range.minMs || ms > range.maxMs) {
    const bounds = `${describeDuration(range.minMs)} to ${describeDuration(range.maxMs)}`
    throw usageError('usage', `${name} must be from ${bounds}`)
  }
  return ms
}

/** Returns the shortest exact text that `parseDuration` reads. */
export function describeDuration(ms: number): string {
  const whole = Object.entries(UNITS_MS).filter(([, size]) => ms >= size && ms % size === 0)
  const [unit, size] = whole.at(-1) ?? ['ms', 1]
  return `${ms / size}${unit}`
}
