import { describe, expect, it } from 'vitest'
import { retryAfterMs } from '../../src/base/fetch.js'

const NOW = Date.UTC(2026, 0, 1)

const waitFor = (retryAfter: string, date?: string) =>
  retryAfterMs(new Headers({ 'retry-after': retryAfter, ...(date !== undefined && { date }) }), NOW)

describe('Retry-After', () => {
  it.each([
    ['0', 0],
    ['5', 5000],
    ['007', 7000],
    [' 5 ', 5000],
    ['Thu, 01 Jan 2026 00:00:03 GMT', 3000],
    ['Thursday, 01-Jan-26 00:00:03 GMT', 3000],
    ['Thu Jan  1 00:00:03 2026', 3000],
    ['Thu Jan 15 00:00:00 2026', 14 * 24 * 3600_000],
    ['Wed, 31 Dec 2025 23:59:59 GMT', 0],
  ])('%j asks for %s ms', (value, expected) => {
    expect(waitFor(value)).toBe(expected)
  })

  it.each([
    '',
    'soon',
    '-1',
    '1.5',
    '5s',
    '0x5',
    '1e3',
    '5, 6',
    '2026-01-01T00:00:03Z',
    'Thu, 01 Jan 2026 00:00:03',
    'Thu, 01 Jan 2026 00:00:03 +0100',
    'Thu, 41 Foo 2026 00:00:03 GMT',
    // `Date.parse` would read these.
    '(x) Thu, 01 Jan 2026 00:00:03 GMT',
    'Thu, 01 Jan 2026 00:00:03 GMT (x)',
    '(x) Thursday, 01-Jan-26 00:00:03 GMT',
    'Thursday, 01-Jan-26 00:00:03 GMT (x)',
    '(x) Thu Jan  1 00:00:03 2026',
    'Thu Jan  1 00:00:03 2026 (x)',
  ])('%j is malformed', (value) => {
    expect(waitFor(value)).toBeUndefined()
  })

  it('may be missing', () => {
    expect(retryAfterMs(new Headers(), NOW)).toBeUndefined()
  })

  it('compares a date with that of the answer, whatever the clock here says', () => {
    const at = 'Fri, 02 Jan 2026 12:00:03 GMT'
    expect(waitFor(at, 'Fri, 02 Jan 2026 12:00:00 GMT')).toBe(3000)
    expect(waitFor(at, 'nonsense')).toBe(36 * 3600_000 + 3000)
  })
})
