import { type TokenSourceOptions, tokenSource } from 'express-service-auth/client'
import { describe, expect, it } from 'vitest'
import { knowSecret } from '../../support/secret-search/index.js'
import { API_DOMAIN, API_KEY, CLAIMS } from '../claims.js'
import type { Members } from '../kit.js'

const GOOD: TokenSourceOptions = {
  core: { baseUrl: 'https://core.example', apiKey: API_KEY },
  apiDomain: API_DOMAIN,
  claims: CLAIMS,
}

const made = (change: Members) => tokenSource({ ...GOOD, ...change } as TokenSourceOptions)
const withCore = (change: Members) => made({ core: { ...GOOD.core, ...change } })
const withClaims = (change: Members) => made({ claims: { ...CLAIMS, ...change } })

describe('tokenSource takes', () => {
  it.each<[string, Members]>([
    ['the least validity and time limit', { validitySeconds: 30, timeoutMs: 1 }],
    ['the most', { validitySeconds: 3600, timeoutMs: 60_000 }],
    ['undefined for a default', { singleUse: undefined, fetch: undefined, clock: undefined }],
    ['a caller without permissions', { claims: { ...CLAIMS, permissions: [] } }],
  ])('%s', (_, change) => {
    expect(made(change).health().state).toMatch(/^(?:cold|single_use)$/)
  })

  it.each(['https://core.example/below', 'http://localhost:3567', 'http://[::1]:3567/'])(
    'a core at %s',
    (baseUrl) => {
      expect(withCore({ baseUrl }).health()).toEqual({ state: 'cold' })
    },
  )

  it('a core over http: when that is allowed', () => {
    const core = { ...GOOD.core, baseUrl: 'http://core.internal:3567' }
    expect(made({ core, allowInsecureHttp: true }).health()).toEqual({ state: 'cold' })
  })
})

describe('tokenSource refuses, naming it,', () => {
  it.each<[string, Members]>([
    ['core', { core: undefined }],
    ['core', { core: 'https://core.example' }],
    ['apiDomain', { apiDomain: '' }],
    ['claims', { claims: undefined }],
    ['validitySeconds', { validitySeconds: 29 }],
    ['validitySeconds', { validitySeconds: 3601 }],
    ['validitySeconds', { validitySeconds: 300.5 }],
    ['validitySeconds', { validitySeconds: '300' }],
    ['singleUse', { singleUse: 'yes' }],
    ['timeoutMs', { timeoutMs: 0 }],
    ['timeoutMs', { timeoutMs: 60_001 }],
    ['timeoutMs', { timeoutMs: Number.NaN }],
    ['allowInsecureHttp', { allowInsecureHttp: 1 }],
    ['fetch', { fetch: 'fetch' }],
    ['clock', { clock: 0 }],
    ['algorithm', { algorithm: 'RS512' }],
    ['useStaticSigningKey', { useStaticSigningKey: true }],
  ])('%s: %j', (path, change) => {
    expect(() => made(change)).toThrow(TypeError)
    expect(() => made(change)).toThrow(new RegExp(`^tokenSource options: .*\\b${path}\\b`))
  })

  it.each([
    ['http://core.example', /https:/],
    ['https://:secret-of-the-core@core.example', /user name or password/],
    ['https://core.example/?key=secret-of-the-core', /query or a fragment/],
    ['https://core.example/#secret-of-the-core', /query or a fragment/],
    ['', /core\.baseUrl must be/],
  ])('a core at %s, without repeating the address', (baseUrl, fault) => {
    expect(() => withCore({ baseUrl })).toThrow(TypeError)
    expect(() => withCore({ baseUrl })).toThrow(fault)
    expect(() => withCore({ baseUrl })).toThrow(/^(?!.*secret-of-the-core).*core\.baseUrl/)
  })

  it.each(['', 'two words-of-a-key', 'line-of-a-key\n', 'schlüssel', 7, null, undefined])(
    'the API key %j, without repeating it',
    (apiKey) => {
      if (typeof apiKey === 'string' && apiKey.length > 10) knowSecret('an API key', apiKey)
      expect(() => withCore({ apiKey })).toThrow(TypeError)
      expect(() => withCore({ apiKey })).toThrow(/core\.apiKey must be/)
    },
  )

  it.each([
    ...['iss', 'iat', 'exp', 'nbf', 'jti', 'sessionHandle', 'refreshTokenHash1', 'rsub', 'tId'],
    ...['version', 'tokenType', 'constructor', '__proto__'],
  ])('the claim %s, which is not for callers to choose', (name) => {
    const claims = JSON.parse(JSON.stringify({ ...CLAIMS, x: 1 }).replace('"x"', `"${name}"`))
    expect(() => made({ claims })).toThrow(TypeError)
    expect(() => made({ claims })).toThrow(`claims.${name}`)
  })

  it.each<[string, Members]>([
    ['aud', { aud: ['orders'] }],
    ['aud', { aud: '' }],
    ['sub', { sub: undefined }],
    ['source', { source: 7 }],
    ['token_type', { token_type: null }],
    ['permissions', { permissions: 'orders:read' }],
    ['permissions', { permissions: undefined }],
    ['permissions[1]', { permissions: ['orders:read', ''] }],
    ['permissions[0]', { permissions: new Array(1) }],
  ])('the claim %s: %j', (name, change) => {
    expect(() => withClaims(change)).toThrow(TypeError)
    expect(() => withClaims(change)).toThrow(`claims.${name} must be`)
  })
})

it('later changes of the options have no effect', async () => {
  const permissions = ['orders:read']
  const bodies: string[] = []
  const recorded: typeof fetch = async (_, init) => {
    bodies.push(String(init?.body))
    return new Response('', { status: 500 })
  }
  const source = made({ claims: { ...CLAIMS, permissions }, fetch: recorded })
  permissions.push('admin')
  await expect(source.token()).rejects.toThrow('core_failed')
  expect(bodies).toEqual([expect.not.stringContaining('admin')])
})
