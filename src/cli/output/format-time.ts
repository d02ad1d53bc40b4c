const UNITS = [
  ['days', 86_400],
  ['h', 3600],
  ['min', 60],
] as const

/** A number of seconds for people: from two of a unit on, in whole ones of it. */
export function durationInWords(seconds: number): string {
  const whole = Math.round(seconds)
  const [unit, size] = UNITS.find(([, size]) => whole >= 2 * size) ?? ['s', 1]
  return `${Math.floor(whole / size)} ${unit}`
}

/** Whole days from now, in milliseconds, until a moment in seconds; negative once it is over. */
export const daysUntil = (seconds: number, nowMs: number): number =>
  Math.floor((seconds - nowMs / 1000) / 86_400)

/** A moment in seconds since the epoch, in UTC. */
export function momentInWords(seconds: number): string {
  const moment = new Date(seconds * 1000)
  return Number.isFinite(moment.getTime())
    ? moment.toISOString().replace('.000Z', 'Z')
    : String(seconds)
}

/** The value of a denylist entry, which is a moment for `issued-before`. */
export const valueInWords = (value: string | number): string =>
  typeof value === 'number' ? momentInWords(value) : value

/** The end of a denylist entry. */
export const untilInWords = (until: number | null): string =>
  until === null ? 'forever' : momentInWords(until)
