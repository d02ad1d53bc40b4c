import { describe, expect, it } from 'vitest'
import { addressFault, readResponseBody, retryAfterMs } from '../../src/base/fetch.js'

describe('an address', () => {
  it.each([
    'https://core.example/auth/jwt/jwks.json',
    'http://localhost:3000/jwks.json',
    'http://127.0.0.1/jwks.json',
    'http://127.255.3.4/jwks.json',
    'http://2130706433/jwks.json',
    'http://[::1]:8080/jwks.json',
  ])('takes %s', (address) => {
    expect(addressFault(address, false)).toBeUndefined()
  })

  it.each([
    ['http://core.example/jwks.json', /https:/],
    ['http://localhost.core.example/jwks.json', /https:/],
    ['http://127.0.0.1.core.example/jwks.json', /https:/],
    ['http://128.0.0.1/jwks.json', /https:/],
    ['http://[::2]/jwks.json', /https:/],
    ['ftp://core.example/jwks.json', /absolute https:/],
    ['file:///etc/jwks.json', /absolute https:/],
    ['/auth/jwt/jwks.json', /absolute https:/],
    ['core.example', /absolute https:/],
    ['https://user@core.example/', /user name/],
    ['https://:secret@core.example/', /password/],
  ])('refuses %s and says what is wrong', (address, fault) => {
    expect(addressFault(address, false)).toMatch(fault)
  })

  it('takes http: anywhere once that is allowed, but no password and no other scheme', () => {
    expect(addressFault('http://core.internal/jwks.json', true)).toBeUndefined()
    expect(addressFault('http://user:secret@core.internal/', true)).toMatch(/password/)
    expect(addressFault('data:application/json,{}', true)).toMatch(/absolute/)
  })

  it('never repeats the address, which may hold a secret', () => {
    expect(addressFault('https://user:secret@core.example/', false)).not.toContain('secret')
  })
})

describe('the body of a response', () => {
  it('reads a body up to the limit, and nothing of a larger one', async () => {
    expect(await readResponseBody(new Response('four'), 4)).toEqual(Buffer.from('four'))
    expect(await readResponseBody(new Response('four'), 3)).toBeUndefined()
    expect(await readResponseBody(new Response(null), 0)).toEqual(Buffer.alloc(0))
  })

  it('stops reading where the limit is passed', async () => {
    let pulled = 0
    let isCancelled = false
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        pulled += 1
        controller.enqueue(new Uint8Array(10))
      },
      cancel() {
        isCancelled = true
      },
    })
    expect(await readResponseBody(new Response(endless), 100)).toBeUndefined()
    expect(isCancelled).toBe(true)
    expect(pulled).toBeLessThan(20)
  })
})

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
