import { describe, expect, it } from 'vitest'
import {
  addressFault,
  connectionFault,
  readResponseBody,
  retryAfterMs,
  sentMethod,
} from '../../src/base/fetch.js'

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
    '1.5',
    '0x5',
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

describe('an address', () => {
  it.each<[string, boolean, RegExp | undefined]>([
    ['https://core.example/path', false, undefined],
    ['HTTP://LOCALHOST:3567', false, undefined],
    ['http://[::1]', false, undefined],
    ['http://127.0.0.1', false, undefined],
    ['http://0x7f.255.255.254', false, undefined],
    ['http://core.example', true, undefined],
    ['http://core.example', false, /must be https:/],
    ['http://localhost.example', false, /must be https:/],
    ['http://127.0.0.1.example', false, /must be https:/],
    ['http://[::2]', false, /must be https:/],
    ['ftp://core.example', true, /absolute https: URL/],
    ['core.example', true, /absolute https: URL/],
    ['https://user@core.example', true, /user name or password/],
    ['https://:secret@core.example', true, /user name or password/],
  ])('%s, with http allowed: %s', (address, allowInsecureHttp, fault) => {
    const found = addressFault(address, allowInsecureHttp)
    if (fault === undefined) expect(found).toBeUndefined()
    else expect(found).toMatch(fault)
  })
})

it('a method is sent in capitals if fetch would send it so', () => {
  for (const method of ['delete', 'Get', 'head', 'options', 'post', 'put']) {
    expect(sentMethod(method)).toBe(method.toUpperCase())
  }
  for (const method of ['patch', 'posts', 'xget']) expect(sentMethod(method)).toBe(method)
})

it('a body is read up to its limit, and a response may have none', async () => {
  const read = (body: string | null, maxBytes: number) =>
    readResponseBody(new Response(body), maxBytes)
  expect(await read('1234', 4)).toEqual(Buffer.from('1234'))
  expect(await read('12345', 4)).toBeUndefined()
  expect(await read(null, 0)).toEqual(Buffer.alloc(0))
})

describe('the fault of a connection', () => {
  const failed = (members: object, cause?: unknown): Error =>
    Object.assign(new Error('failed', { cause }), members)
  const REFUSED = failed({ code: 'ECONNREFUSED', syscall: 'connect' })
  const RESET = failed({ code: 'ECONNRESET', syscall: 'read' })
  const LATE = 'UND_ERR_CONNECT_TIMEOUT'
  const ofAll = (...errors: unknown[]) =>
    Object.assign(new AggregateError(errors), { code: 'ECONNREFUSED' })
  const nested = (depth: number): Error => (depth === 0 ? REFUSED : failed({}, nested(depth - 1)))

  it.each<[string, unknown, string | undefined, boolean]>([
    ['of no error', 'ECONNREFUSED', undefined, false],
    ['of an error without a code', failed({ syscall: 'connect' }), undefined, false],
    ['of a code that is none of Node', failed({ code: 'no code' }), undefined, false],
    ['of a code that begins in another way', failed({ code: '_ECONNREFUSED' }), undefined, false],
    ['of a number', failed({ code: 20, syscall: 'connect' }), undefined, false],
    ['of a refused connection', REFUSED, 'ECONNREFUSED', true],
    ['of a name', failed({ code: 'ENOTFOUND', syscall: 'getaddrinfo' }), 'ENOTFOUND', true],
    ['of no connection in time', failed({ code: LATE }), LATE, true],
    ['of a connection that broke', RESET, 'ECONNRESET', false],
    ['of a cause', failed({ code: 'ERR_OUTER' }, REFUSED), 'ECONNREFUSED', true],
    ['of the seventh cause', nested(7), 'ECONNREFUSED', true],
    ['of a cause too deep', nested(8), undefined, false],
    ['of all addresses of a host', ofAll(REFUSED, REFUSED), 'ECONNREFUSED', true],
    ['of addresses, one of which answered', ofAll(REFUSED, RESET), 'ECONNREFUSED', false],
    ['of addresses, one without an error', ofAll(REFUSED, 'no'), 'ECONNREFUSED', false],
    ['of no address', ofAll(), 'ECONNREFUSED', false],
  ])('%s', (_name, thrown, systemCode, isBeforeConnection) => {
    expect(connectionFault(thrown)).toStrictEqual({
      ...(systemCode !== undefined && { systemCode }),
      isBeforeConnection,
    })
  })
})
