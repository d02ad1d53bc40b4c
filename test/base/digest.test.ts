import fc from 'fast-check'
import { expect, it } from 'vitest'
import { digestOfParts } from '../../src/base/digest.js'
import { anyCharacter } from './any-character.js'

it('a digest is 144 bits of base64url', () => {
  expect(digestOfParts(['a', 'b'])).toMatch(/^[A-Za-z0-9_-]{24}$/)
})

it('different parts have different digests, equal ones the same', () => {
  const parts = fc.array(fc.string({ unit: anyCharacter, maxLength: 4 }), { maxLength: 4 })
  fc.assert(
    fc.property(parts, parts, (one, other) => {
      const same = JSON.stringify(one) === JSON.stringify(other)
      expect(digestOfParts(one) === digestOfParts(other)).toBe(same)
    }),
  )
})

it('where a part ends counts, and so do lone surrogates', () => {
  const lists = [
    ['ab', 'c'],
    ['a', 'bc'],
    ['abc'],
    ['abc', ''],
    ['', 'abc'],
    ['1:a'],
    ['a1:', 'bc'],
  ]
  const odd = [['\ud800'], ['\udfff'], ['\ufffd'], ['\ud800\udc00'], ['\udc00\ud800']]
  const digests = [...lists, ...odd].map(digestOfParts)
  expect(new Set(digests).size).toBe(digests.length)
})
