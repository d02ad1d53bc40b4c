const UNITS = [
  ['days', 86_400],
  ['h', 3600],
  ['min', 60],
] as const

/** Formats seconds for people, in whole units of the largest unit that fits at least twice. */
export function formatDuration(seconds: number): string {
  const whole = Math.round(seconds)
  const [unit, size] = UNITS.find(([, inSeconds]) => whole >= 2 * inSeconds) ?? ['s', 1]
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
