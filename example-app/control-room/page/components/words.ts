const MS_PER_SECOND = 1000
const SECONDS_PER_MINUTE = 60
const MINUTES_PER_HOUR = 60

const WHOLE = new Intl.NumberFormat('en')
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })

export const count = (value: number): string => WHOLE.format(value)

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`

/** A duration that was measured: `4.1 ms`, `312 ms`, `2.5 s`. */
export function milliseconds(value: number): string {
  if (value >= MS_PER_SECOND) return `${(value / MS_PER_SECOND).toFixed(1)} s`
  return value >= 100 ? `${Math.round(value)} ms` : `${value.toFixed(1)} ms`
}

/** A duration that passes: `12 s`, `3 min 5 s`, `1 h 4 min`. */
export function seconds(durationMs: number): string {
  const whole = Math.max(0, Math.round(durationMs / MS_PER_SECOND))
  if (whole < SECONDS_PER_MINUTE) return `${whole} s`
  const minutes = Math.floor(whole / SECONDS_PER_MINUTE)
  if (minutes < MINUTES_PER_HOUR) return `${minutes} min ${whole % SECONDS_PER_MINUTE} s`
  return `${Math.floor(minutes / MINUTES_PER_HOUR)} h ${minutes % MINUTES_PER_HOUR} min`
}

/** `14:03:55`, by the visitor's clock. */
export const clockTime = (at: number): string => CLOCK.format(at)
