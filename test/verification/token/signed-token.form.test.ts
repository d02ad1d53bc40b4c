import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseToken } from '../../../src/verification/token/signed-token.js'

const encode = (text: string | Uint8Array): string => Buffer.from(text).toString('base64url')
const withHeader = (header: unknown) =>
  parseToken(`${encode(typeof header === 'string' ? header : JSON.stringify(header))}.AA.AA`)
const reasonOf = (token: string): string => {
  const decision = parseToken(token)
  return decision.ok ? 'accepted' : decision.reason
}

describe('a token, before its signature', () => {
  it('is accepted with its key id, whatever its payload', () => {
    const token = `${encode('{"alg":"RS256","kid":"k"}')}.____.AA`
    expect(parseToken(token)).toEqual({ ok: true, value: { token, kid: 'k' } })
    expect(withHeader({ alg: 'RS256', kid: 'k', typ: 'x', cty: 1, x: {} })).toMatchObject({
      ok: true,
    })
  })

  const FORMS = ['', '..', 'AA.AA.', '.AA.AA', 'AA..AA', 'AA.AA.AA.AA', 'AA.AA.AA\n', 'A+.AA.AA']
  it.each(FORMS)('is malformed as %j', (token) => {
    expect(reasonOf(token)).toBe('token_malformed')
  })

  it('is malformed where the encoding could be another of the same bytes', () => {
    const header = encode('{"alg":"RS256","kid":"k"}')
    for (const segment of ['A', 'AAAAA', 'AB', 'A_', 'AAB', 'AAD', 'AAAAAB', 'AAAA-']) {
      expect(reasonOf(`${header}.${segment}.AA`)).toBe('token_malformed')
      expect(reasonOf(`${header}.AA.${segment}`)).toBe('token_malformed')
    }
    for (const segment of ['AA', 'AQ', 'Ag', 'Aw', 'AAA', 'AAE', 'AAg', 'AA8', 'AAAA', '____']) {
      expect(reasonOf(`${header}.${segment}.${segment}`)).toBe('accepted')
    }
  })

  it('has one spelling for its bytes', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[A-Za-z0-9_-]{1,12}$/), (segment) => {
        const isCanonical = Buffer.from(segment, 'base64url').toString('base64url') === segment
        const token = `${encode('{"alg":"RS256","kid":"k"}')}.${segment}.AA`
        expect(reasonOf(token)).toBe(isCanonical ? 'accepted' : 'token_malformed')
      }),
    )
  })

  it.each(['null', '[]', '1', '"x"', 'true', '', '{', '{}x', '\ufeff{}', '{"a":1,}'])(
    'has no header in %j',
    (json) => {
      expect(withHeader(json)).toMatchObject({ reason: 'token_malformed' })
    },
  )

  it.each([undefined, null, '', 'none', 'HS256', 'rs256', 'RS256 ', ['RS256'], { a: 1 }, 256])(
    'is refused under alg %j',
    (alg) => {
      expect(withHeader({ alg, kid: 'k' })).toMatchObject({ reason: 'algorithm_not_allowed' })
    },
  )

  it('takes nothing in its header from a prototype', () => {
    expect(withHeader('{"__proto__":{"alg":"RS256","kid":"k"}}')).toMatchObject({
      reason: 'algorithm_not_allowed',
    })
    expect(withHeader('{"alg":"RS256","__proto__":{"kid":"k"}}')).toMatchObject({
      reason: 'key_id_invalid',
    })
    expect(withHeader('{"alg":"RS256","kid":"k","__proto__":{"crit":[]}}')).toMatchObject({
      ok: true,
    })
    for (const [name, value] of Object.entries({ alg: 'RS256', kid: 'k' })) {
      const rest = { alg: 'RS256', kid: 'k', [name]: undefined }
      Object.defineProperty(Object.prototype, name, { configurable: true, value })
      try {
        expect(withHeader(rest)).toMatchObject({ ok: false })
      } finally {
        delete (Object.prototype as Record<string, unknown>)[name]
      }
    }
  })

  it.each(['crit', 'b64', 'jwk', 'jku', 'x5c', 'x5u', 'version'])(
    'is refused with %s of any value',
    (name) => {
      for (const value of [null, false, true, '', [], {}, 'x']) {
        expect(withHeader({ alg: 'RS256', kid: 'k', [name]: value })).toMatchObject({
          reason: 'header_parameter_forbidden',
        })
      }
    },
  )

  const KIDS = [undefined, null, '', 1, ['k'], {}, 'a b', 'k\n', '\u007f', 'ä', 'k'.repeat(257)]
  it.each(KIDS)('is refused under kid %j', (kid) => {
    expect(withHeader({ alg: 'RS256', kid })).toMatchObject({ reason: 'key_id_invalid' })
  })

  it.each(['k', '!', '~', '__proto__', 'k'.repeat(256)])('may have the kid %j', (kid) => {
    expect(withHeader({ alg: 'RS256', kid })).toMatchObject({ ok: true, value: { kid } })
  })
})
