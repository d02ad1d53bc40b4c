import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { headerValues, readKey, readToken, type WireHeaders } from '../../src/base/raw-headers.js'
import { anyCharacter } from './any-character.js'

/** What a server of Node gives: the same headers in both forms. */
function wireOf(rawHeaders: readonly string[]): WireHeaders {
  const headers: Record<string, string> = Object.create(null)
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers[rawHeaders[index]?.toLowerCase() ?? ''] ??= rawHeaders[index + 1] ?? ''
  }
  return { rawHeaders, headers }
}

const readOne = (value: string) => readToken(wireOf(['Host', 'x', 'Authorization', value]))

describe('the values of a header', () => {
  it('are found in any case of its name, in their order', () => {
    const raw = ['A', '1', 'authorization', '2', 'AUTHORIZATION', '3', 'Authorization-x', '4']
    expect(headerValues(wireOf(raw), 'authorization')).toEqual(['2', '3'])
    expect(headerValues(wireOf([]), 'authorization')).toEqual([])
  })

  it('are never taken for names', () => {
    const raw = ['X', 'authorization', 'Y', 'authorization']
    expect(headerValues(wireOf(raw), 'authorization')).toEqual([])
  })

  it('are not those of a name of the same length', () => {
    expect(headerValues(wireOf(['Cache-Control', 'x']), 'authorization')).toEqual([])
  })
})

describe('a header that the two forms do not agree on', () => {
  const fault = expect.objectContaining({
    name: 'ServiceAuthError',
    code: 'wrong_wiring',
    message: expect.stringMatching(/authorization.*rawHeaders/),
  })
  const read = (rawHeaders: unknown, headers: unknown) => () =>
    headerValues({ rawHeaders, headers } as WireHeaders, 'authorization')

  it('is a fault where rawHeaders lack it', () => {
    const headers = { authorization: 'Bearer x' }
    expect(read(['Host', 'x'], headers)).toThrow(fault)
    expect(read(['Host', 'x'], { authorization: '' })).toThrow(fault)
    for (const raw of [[], undefined, null, {}, 'authorization', new Map()]) {
      expect(read(raw, headers)).toThrow(fault)
    }
    // Other forms of a list than Node's.
    expect(read([['authorization', 'Bearer x']], headers)).toThrow(fault)
    expect(read([{ name: 'authorization', value: 'Bearer x' }], headers)).toThrow(fault)
  })

  it('is a fault where rawHeaders are empty, in whatever case headers name it', () => {
    expect(read([], { Authorization: 'Bearer x' })).toThrow(fault)
    expect(read([], { host: 'x' })).toThrow(fault)
    expect(read([], {})()).toEqual([])
    expect(read([], undefined)()).toEqual([])
    expect(read(['Host', 'x'], { host: 'x' })()).toEqual([])
  })

  it('counts as rawHeaders have it', () => {
    const raw = ['authorization', 'one', 'Authorization', 'two']
    for (const headers of [{}, undefined, { authorization: 'three' }]) {
      expect(read(raw, headers)()).toEqual(['one', 'two'])
    }
  })
})

describe('a bearer token', () => {
  it.each(['Bearer', 'bearer', 'BEARER'])('is what follows %s and one blank', (scheme) => {
    expect(readOne(`${scheme} a.b.c`)).toEqual({ ok: true, token: 'a.b.c', scheme: 'Bearer' })
  })

  it.each([
    ['Bearer a b', { scheme: 'Bearer', token: 'a b' }],
    ['dpop a.b.c', { scheme: 'DPoP', token: 'a.b.c' }],
  ])('may come with a proof: %s', (value, presented) => {
    expect(readToken(wireOf(['Authorization', value]))).toEqual({ ok: true, ...presented })
  })

  it.each(['', 'Bearer', 'Basic x', 'Bearerx', 'Bearer\tx', ' Bearer x', 'XBearer x', '\u0000'])(
    'is not in %j',
    (value) => {
      expect(readOne(value)).toMatchObject({ reason: 'authorization_malformed' })
    },
  )

  it('has at most 8192 characters', () => {
    expect(readOne(`Bearer ${'a'.repeat(8192)}`)).toMatchObject({ ok: true })
    expect(readOne(`Bearer ${'a'.repeat(8193)}`)).toMatchObject({ reason: 'token_too_long' })
  })

  it('is decided on for any header list, without an exception', () => {
    const headers = fc.array(
      fc.oneof(fc.constant('authorization'), fc.constant('Bearer x'), fc.string()),
    )
    fc.assert(
      fc.property(headers, (raw) => {
        expect(readToken(wireOf(raw))).toHaveProperty('ok')
      }),
    )
  })
})

const visible = fc.string({
  unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)),
  minLength: 1,
  maxLength: 255,
})

describe('readKey', () => {
  it('reads every visible key from its quoted form', () => {
    fc.assert(
      fc.property(visible, (key) => {
        const quoted = `"${key.replace(/["\\]/g, '\\$&')}"`
        expect(readKey([quoted])).toEqual({ type: 'key', key })
        if (!key.startsWith('"')) expect(readKey([key])).toEqual({ type: 'key', key })
      }),
    )
  })

  it('never gives a key that is not 1 to 255 visible ASCII characters', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 600, unit: anyCharacter }), (value) => {
        const header = readKey([value])
        if (header.type === 'key') expect(header.key).toMatch(/^[\x21-\x7e]{1,255}$/)
        else expect(header.type).toBe('invalid')
      }),
      { numRuns: 1000 },
    )
  })

  it.each([
    ['nothing', ''],
    ['256 characters', 'k'.repeat(256)],
    ['256 characters after unescaping', `"${'\\"'.repeat(256)}"`],
    ['a blank inside', 'a b'],
    ['an empty string', '""'],
    ['an open string', '"abc'],
    ['a quote inside', '"a"b"'],
    ['a parameter', '"a";p=1'],
    ['an unknown escape', '"\\n"'],
    ['a character beyond ASCII', 'caf\xe9'],
    ['a tab inside', 'a\tb'],
  ])('takes no key from %s', (_what, value) => {
    expect(readKey([value]).type).toBe('invalid')
  })

  it('takes 255 characters, counted after unescaping', () => {
    const keys = ['k', '"'].map((character) => character.repeat(255))
    const values = [keys[0] ?? '', `"${keys[0]}"`, `"${'\\"'.repeat(255)}"`]
    expect(values.map((value) => readKey([value]))).toEqual(
      [keys[0], ...keys].map((key) => ({ type: 'key', key })),
    )
  })

  it('tells a missing header from a repeated one', () => {
    expect(readKey([]).type).toBe('missing')
    expect(readKey(['a', 'a']).type).toBe('invalid')
  })

  it('takes no longer for a long one', () => {
    expect(readKey([`"${'\\"'.repeat(500_000)}`]).type).toBe('invalid')
    expect(readKey([`"${'a'.repeat(500_000)}"`]).type).toBe('invalid')
  })
})
