import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readKey } from '../../src/base/idempotency-key.js'
import { anyCharacter } from './any-character.js'

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
    ['256 characters, quoted', `"${'k'.repeat(256)}"`],
    ['256 characters after unescaping', `"${'\\"'.repeat(256)}"`],
    ['a blank inside', 'a b'],
    ['a blank inside, quoted', '"a b"'],
    ['an empty string', '""'],
    ['an open string', '"abc'],
    ['a lone quote', '"'],
    ['a quote inside', '"a"b"'],
    ['a parameter', '"a";p=1'],
    ['a list of strings', '"a", "b"'],
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
