import {
  type ServiceFetchOptions,
  serviceFetch,
  type TokenSourceOptions,
  tokenSource,
} from 'express-service-auth/client'
import { describe, expect, it } from 'vitest'
import { knowSecret } from '../support/secret-search/index.js'
import { API_DOMAIN, API_KEY, CLAIMS } from './claims.js'
import type { Members } from './kit.js'

const CORE = { baseUrl: 'https://core.example', apiKey: API_KEY }
const GOOD = { core: CORE, apiDomain: API_DOMAIN, claims: CLAIMS }
const SOURCE = { token: async () => 'a-token' }
const ORIGINS = ['https://orders.example.com']

const made = (change: Members) => () => tokenSource({ ...GOOD, ...change } as TokenSourceOptions)
const withCore = (change: Members) => made({ core: { ...CORE, ...change } })
const withClaims = (change: Members) => made({ claims: { ...CLAIMS, ...change } })
const called = (change: Members) => () =>
  serviceFetch(SOURCE, { origins: ORIGINS, ...change } as unknown as ServiceFetchOptions)

/** Each value is refused by a TypeError that names its place. */
function expectRefused(make: () => unknown, start: string, place: string): void {
  expect(make).toThrow(TypeError)
  expect(make).toThrow(start)
  expect(make).toThrow(place)
}

describe('tokenSource', () => {
  it.each<[string, Members]>([
    ['the least validity and time limit', { validitySeconds: 30, timeoutMs: 1 }],
    ['the most', { validitySeconds: 3600, timeoutMs: 60_000 }],
    ['undefined for a default', { singleUse: undefined, fetch: undefined, clock: undefined }],
    ['a caller without permissions', { claims: { ...CLAIMS, permissions: [] } }],
    ['a core with a path', { core: { ...CORE, baseUrl: 'https://core.example/below' } }],
    ['a core on loopback', { core: { ...CORE, baseUrl: 'http://localhost:3567' } }],
    [
      'a core over http: when that is allowed',
      { core: { ...CORE, baseUrl: 'http://core.internal:3567' }, allowInsecureHttp: true },
    ],
  ])('takes %s', (_, change) => {
    expect(made(change)().health()).toEqual({ state: 'cold' })
  })

  it.each<[string, ...unknown[]]>([
    ['core', undefined, 'https://core.example'],
    ['apiDomain', ''],
    ['claims', undefined],
    ['validitySeconds', 29, 3601, 300.5, '300'],
    ['singleUse', 'yes'],
    ['timeoutMs', 0, 60_001, Number.NaN],
    ['allowInsecureHttp', 1],
    ['fetch', 'fetch'],
    ['clock', 0],
    ['algorithm', 'RS512'],
    ['useStaticSigningKey', true],
  ])('refuses a wrong or unknown %s', (name, ...values) => {
    for (const value of values)
      expectRefused(made({ [name]: value }), 'tokenSource options: ', `${name} `)
  })

  it.each([
    ['http://core.example', /https:/],
    ['https://:secret-of-the-core@core.example', /user name or password/],
    ['https://core.example/?key=secret-of-the-core', /query or a fragment/],
    ['https://core.example/#secret-of-the-core', /query or a fragment/],
    ['', /core\.baseUrl must be/],
  ])('refuses a core at %s, without repeating the address', (baseUrl, fault) => {
    expectRefused(withCore({ baseUrl }), 'tokenSource options: ', 'core.baseUrl')
    expect(withCore({ baseUrl })).toThrow(fault)
    expect(withCore({ baseUrl })).not.toThrow(/secret-of-the-core/)
  })

  it('refuses what is no API key, without repeating it', () => {
    const texts = ['two words-of-a-key', 'line-of-a-key\n']
    for (const text of texts) knowSecret('an API key', text)
    for (const apiKey of ['', ...texts, 'schlüssel', 7, null, undefined]) {
      expectRefused(withCore({ apiKey }), 'tokenSource options: ', 'core.apiKey must be')
    }
  })

  it('refuses every claim that is not for callers to choose', () => {
    const session = ['sessionHandle', 'refreshTokenHash1', 'rsub', 'tId', 'version']
    for (const name of ['iss', 'iat', 'exp', 'nbf', 'jti', ...session, '__proto__']) {
      const claims = JSON.parse(JSON.stringify({ ...CLAIMS, x: 1 }).replace('"x"', `"${name}"`))
      expectRefused(made({ claims }), 'tokenSource options: ', `claims.${name}`)
    }
  })

  it.each<[string, Members]>([
    ['aud', { aud: ['orders'] }],
    ['aud', { aud: '' }],
    ['sub', { sub: undefined }],
    ['source', { source: 7 }],
    ['token_type', { token_type: null }],
    ['permissions', { permissions: 'orders:read' }],
    ['permissions[1]', { permissions: ['orders:read', ''] }],
    ['permissions[0]', { permissions: new Array(1) }],
  ])('refuses the claim %s: %j', (name, change) => {
    expectRefused(withClaims(change), 'tokenSource options: ', `claims.${name} must be`)
  })

  it('does not see later changes of its options', async () => {
    const permissions = ['orders:read']
    const bodies: string[] = []
    const fetch: typeof globalThis.fetch = async (_, init) => {
      bodies.push(String(init?.body))
      return new Response('', { status: 500 })
    }
    const source = made({ claims: { ...CLAIMS, permissions }, fetch })()
    permissions.push('admin')
    await expect(source.token()).rejects.toThrow('core_failed')
    expect(bodies).toEqual([expect.not.stringContaining('admin')])
  })
})

describe('serviceFetch', () => {
  const OTHERS = Array.from({ length: 17 }, (_, index) => `https://orders-${index}.example.com`)

  it.each<[string, Members]>([
    ['a slash at the end', { origins: ['https://orders.example.com/'] }],
    ['the usual port', { origins: ['https://Orders.Example.com:443'] }],
    ['loopback', { origins: ['http://localhost:1', 'http://127.8.9.1:1', 'http://[::1]:1'] }],
    ['http: where that is allowed', { origins: ['http://orders'], allowInsecureHttp: true }],
    ['16 origins', { origins: OTHERS.slice(1) }],
    [
      'the least of each',
      {
        ...{ deadlineMs: 100, attemptTimeoutMs: 100, maxAttempts: 1 },
        ...{ maxBodyBytes: 0, maxResponseBytes: 0, idempotencyKey: false },
      },
    ],
    ['the most of each', { deadlineMs: 600_000, attemptTimeoutMs: 600_000, maxAttempts: 10 }],
  ])('takes %s', (_, change) => {
    expect(called(change)).not.toThrow()
  })

  it.each([
    ...['orders.example.com', 'https://orders.example.com/api', 'https://orders.example.com/?'],
    ...['https://me:hush@orders.example.com', 'http://orders.example.com', 'null', '*', '', 7],
  ])('refuses the origin %j by its place, without repeating it', (origin) => {
    expectRefused(called({ origins: [...ORIGINS, origin] }), 'serviceFetch: ', 'origins[1] must')
    expect(called({ origins: [...ORIGINS, origin] })).not.toThrow(/hush/)
  })

  it.each<[string, ...unknown[]]>([
    ['origins', undefined, [], OTHERS, 'https://orders.example.com'],
    ['deadlineMs', 99, 600_001, Number.NaN],
    ['attemptTimeoutMs', 99, '1000'],
    ['maxAttempts', 0, 11, 1.5],
    ['idempotencyKey', true, 'order-1', null],
    ['maxBodyBytes', -1],
    ['maxResponseBytes', Number.POSITIVE_INFINITY],
    ['onCall', 'log'],
    ['allowInsecureHttp', 'yes'],
    ['fetch', {}],
    ['retries', 3],
  ])('refuses a wrong or unknown %s', (name, ...values) => {
    for (const value of values) expectRefused(called({ [name]: value }), 'serviceFetch: ', name)
  })

  it.each([undefined, null, 'a-token', {}, { token: 'a-token' }, { ...SOURCE, proof: 'x' }])(
    'refuses the source %j, and such options',
    (wrong) => {
      expect(() => serviceFetch(wrong as never, { origins: ORIGINS })).toThrow(TypeError)
      expect(() => serviceFetch(SOURCE, wrong as never)).toThrow(TypeError)
    },
  )
})
