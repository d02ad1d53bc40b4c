import { expect, it } from 'vitest'
import { nextClaims, unexpectedMember } from '../../../src/client/token-source/mint.js'
import { knowToken } from '../../support/secret-search/index.js'
import { API_DOMAIN, CLAIMS } from '../claims.js'
import { compact, type Members } from '../kit.js'

const asked = nextClaims(CLAIMS)
const terms = { apiDomain: API_DOMAIN, validitySeconds: 300 }
const HEADER: Members = { kid: 'd-1700000000000', typ: 'JWT', alg: 'RS256' }
const PAYLOAD: Members = { iat: 1_700_000_000, exp: 1_700_000_300, iss: API_DOMAIN, ...asked }

const judged = (header: Members, payload: Members): string | undefined =>
  unexpectedMember(compact(header, payload), asked, terms)

it('gives every token 128 random bits of its own', () => {
  const ids = Array.from({ length: 1000 }, () => nextClaims(CLAIMS).jti)
  expect(new Set(ids).size).toBe(1000)
  expect(ids.every((id) => Buffer.from(id, 'base64url').length === 16)).toBe(true)
})

it('believes what was asked for', () => {
  expect(judged(HEADER, PAYLOAD)).toBeUndefined()
  expect(judged(HEADER, { ...PAYLOAD, exp: 1_700_000_301 })).toBeUndefined()
  expect(judged({ alg: 'RS256', kid: 'd-1' }, PAYLOAD)).toBeUndefined()
})

it.each<[string, Members]>([
  ['alg', { alg: undefined }],
  ['alg', { alg: 'rs256' }],
  ['alg', { alg: 'none' }],
  ['alg', { alg: 'HS256' }],
  ['alg', { alg: ['RS256'] }],
  ['kid', { kid: undefined }],
  ['kid', { kid: '' }],
  ['kid', { kid: 'd-' }],
  ['kid', { kid: 7 }],
  ['kid', { kid: 's-5c1e6a1e-0b5e-4f7e-8d43-3f1f7e1f0a11' }],
  ['kid', { kid: 'D-1700000000000' }],
  ['kid', { kid: ' d-1700000000000' }],
  ['kid', { kid: 'd-17000\n' }],
  ['kid', { kid: `d-${'1'.repeat(255)}` }],
  ['typ', { typ: 'at+jwt' }],
  ['typ', { typ: null }],
  ['another header parameter', { version: '5' }],
  ['another header parameter', { crit: ['exp'] }],
  ['another header parameter', { jku: 'https://elsewhere.example' }],
])('does not believe a header that differs in %s: %j', (member, change) => {
  expect(judged({ ...HEADER, ...change }, PAYLOAD)).toBe(member)
})

it.each<[string, Members]>([
  ['iss', { iss: 'https://other.example' }],
  ['iss', { iss: undefined }],
  ['aud', { aud: ['orders'] }],
  ['aud', { aud: 'refunds' }],
  ['aud', { aud: undefined }],
  ['sub', { sub: 'reporting' }],
  ['sub', { sub: null }],
  ['source', { source: '' }],
  ['token_type', { token_type: 'Service-Access' }],
  ['jti', { jti: 'another' }],
  ['jti', { jti: undefined }],
  ['permissions', { permissions: undefined }],
  ['permissions', { permissions: 'orders:read' }],
  ['permissions', { permissions: [] }],
  ['permissions', { permissions: ['orders:write', 'orders:read'] }],
  ['permissions', { permissions: ['orders:read', 'orders:write', 'orders:refund'] }],
  ['permissions', { permissions: { 0: 'orders:read', 1: 'orders:write', length: 2 } }],
  ['iat', { iat: undefined }],
  ['iat', { iat: '1700000000' }],
  ['iat', { iat: 1_700_000_000.5 }],
  ['exp', { exp: undefined }],
  ['exp', { exp: 1_700_000_299 }],
  ['exp', { exp: 1_700_000_302 }],
  ['exp', { exp: 1_700_000_300.5 }],
  ['exp', { exp: 1_700_000_000 + 3_153_600_000 }],
  ['another claim', { nbf: 1_700_000_000 }],
  ['another claim', { sessionHandle: 'x' }],
  ['another claim', JSON.parse('{"__proto__":{"a":1}}')],
])('does not believe claims that differ in %s: %j', (member, change) => {
  expect(judged(HEADER, { ...PAYLOAD, ...change })).toBe(member)
})

it('does not believe what is no token', () => {
  const good = compact(HEADER, PAYLOAD)
  knowToken(good)
  const [header = '', payload = '', signature = ''] = good.split('.')
  const others = ['', '.', good.slice(0, good.lastIndexOf('.')), `${good}.`, `${good}=`, ` ${good}`]
  const swapped = [payload, header, signature].join('.')
  const lists = [Buffer.from('[]').toString('base64url'), payload, signature].join('.')
  for (const other of [...others, lists])
    expect(unexpectedMember(other, asked, terms)).toBe('its form')
  expect(unexpectedMember(swapped, asked, terms)).toBe('alg')
  expect(unexpectedMember(`${good}${'x'.repeat(8192)}`, asked, terms)).toBe('its size')
})
