import { usageError } from './command-failure.js'

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
    const bounds = `${formatExactDuration(range.minMs)} to ${formatExactDuration(range.maxMs)}`
    throw usageError('usage', `${name} must be from ${bounds}`)
  }
  return ms
}

/** Returns the shortest exact text that `parseDuration` reads. */
export function formatExactDuration(ms: number): string {
  const exactUnits = Object.entries(UNITS_MS).filter(([, size]) => ms >= size && ms % size === 0)
  const [unit, size] = exactUnits.at(-1) ?? ['ms', 1]
  return `${ms / size}${unit}`
}
