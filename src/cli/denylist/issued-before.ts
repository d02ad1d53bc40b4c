import type { Arguments } from '../frame/arguments.js'
import { usageError } from '../frame/command-failure.js'
import { parseDuration } from '../frame/duration.js'

/** A requested cut-off. `now` is the server's time. */
export type IssuedBefore =
  | { readonly kind: 'now'; readonly toleranceSeconds: number }
  | { readonly kind: 'second'; readonly second: number }

const SECONDS = /^\d{1,11}(?:\.\d{1,3})?$/
const MILLISECONDS = /^\d{12,}$/
const ISO_TIME = /^(\d{4}-\d\d-\d\d)T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/
const MAX_AHEAD_SECONDS = 60
const TOLERANCE = { minMs: 0, maxMs: (MAX_AHEAD_SECONDS - 1) * 1000 }

/** @throws CommandFailure (2) */
export function readIssuedBefore(text: string, args: Arguments): IssuedBefore {
  const tolerance = args.text('tolerance')
  if (text === 'now') {
    const toleranceMs = parseDuration('--tolerance', tolerance ?? '5s', TOLERANCE)
    return { kind: 'now', toleranceSeconds: Math.ceil(toleranceMs / 1000) }
  }
  if (tolerance !== undefined)
    throw usageError('usage', '--tolerance is only for issued-before now')
  if (MILLISECONDS.test(text)) {
    throw usageError('usage', 'issued-before expects seconds since the epoch, not milliseconds')
  }
  const second = SECONDS.test(text) ? Number(text) : secondOf(text)
  if (!(second >= 0)) {
    throw usageError(
      'usage',
      'issued-before expects now, seconds since the epoch, or a time with a zone, such as ' +
        '2027-01-31T12:00:00Z',
    )
  }
  return { kind: 'second', second }
}

/** Returns `NaN` for an invalid time, also for 30 February, which JavaScript takes for 2 March. */
function secondOf(text: string): number {
  const [, day] = ISO_TIME.exec(text) ?? []
  const midnight = new Date(`${day}T00:00:00Z`)
  const isRealDay = day !== undefined && Number.isFinite(midnight.getTime())
  if (!isRealDay || !midnight.toISOString().startsWith(day)) return Number.NaN
  return Date.parse(text) / 1000
}

/**
 * Returns the cut-off in seconds. `now` means the second after the server's, plus the
 * tolerance, so that every token of the current second is denied.
 *
 * @throws CommandFailure (2) for a cut-off that would deny future tokens.
 */
export function issuedBeforeAt(cutOff: IssuedBefore, serverSeconds: number): number {
  if (cutOff.kind === 'now') return Math.floor(serverSeconds) + 1 + cutOff.toleranceSeconds
  if (cutOff.second <= serverSeconds + MAX_AHEAD_SECONDS) return cutOff.second
  throw usageError('usage', `the cut-off is more than ${MAX_AHEAD_SECONDS} s ahead of Redis's time`)
}
