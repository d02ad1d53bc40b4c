import type { ObservedResponse } from './request-key-set.js'

/** `Date` counts whole seconds. */
const DATE_RESOLUTION_MS = 1000

/**
 * How far a server's clock is ahead of ours at least (behind: negative), in seconds, by its `Date`.
 * 0 where the length of the exchange and whole seconds may explain the difference; `undefined`
 * without a readable `Date`.
 */
export function clockOffset({
  headers,
  askedAt,
  answeredAt,
}: Pick<ObservedResponse, 'headers' | 'askedAt' | 'answeredAt'>): number | undefined {
  const date = Date.parse(headers.get('date') ?? '')
  if (Number.isNaN(date)) return undefined
  // A cache in between has kept the response, and its Date, for so long.
  const age = Number(headers.get('age') ?? 0)
  const ageMs = Number.isSafeInteger(age) && age > 0 ? age * 1000 : 0
  const earliest = date + ageMs
  const latest = earliest + DATE_RESOLUTION_MS + (ageMs === 0 ? 0 : DATE_RESOLUTION_MS)
  if (earliest > answeredAt) return Math.ceil((earliest - answeredAt) / 1000)
  return latest < askedAt ? -Math.ceil((askedAt - latest) / 1000) : 0
}
