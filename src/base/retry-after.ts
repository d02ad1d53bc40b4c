/** RFC 9110, section 5.6.7: the current form, and two obsolete ones that a recipient must still accept. */
const HTTP_DATES = [
  /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/,
  /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/,
]

/**
 * Milliseconds that `Retry-After` asks to wait (RFC 9110, section 10.2.3); `undefined` when it is
 * missing or malformed. A date is compared with the response's `Date`, so that the two clocks need
 * not agree, or with `now`, in ms since the epoch, if the response has no `Date`.
 */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const value = headers.get('retry-after') ?? ''
  if (/^\d+$/.test(value)) return Number(value) * 1000
  const until = parseHttpDate(value)
  if (until === undefined) return undefined
  return Math.max(0, until - (parseHttpDate(headers.get('date') ?? '') ?? now))
}

function parseHttpDate(value: string): number | undefined {
  if (!HTTP_DATES.some((form) => form.test(value))) return undefined
  // The third form (asctime) names no zone, and means UTC.
  const time = Date.parse(value.endsWith('GMT') ? value : `${value} GMT`)
  return Number.isNaN(time) ? undefined : time
}
