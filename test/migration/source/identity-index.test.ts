import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  createDigestSet,
  createIdentityIndex,
} from '../../../src/migration/source/identity-index.js'

const MANY = 100_000
/** With what waits to be collected. */
const MAX_OCTETS_EACH = 50

test('an identity index gives each id its ordinal once, as a Map would', () => {
  const ids = fc.array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 3 }),
      fc.constantFrom('\ud800', '\ud801', '\ufffd', '__proto__'),
    ),
    { maxLength: 1500 },
  )
  fc.assert(
    fc.property(ids, (given) => {
      const index = createIdentityIndex()
      const model = new Map<string, number>()
      for (const id of given) {
        expect(index.ordinalOf(id)).toBe(model.get(id))
        expect(index.add(id)).toBe(model.has(id) ? undefined : model.size)
        if (!model.has(id)) model.set(id, model.size)
      }
      expect(index.size).toBe(model.size)
      for (const [id, ordinal] of model) expect(index.ordinalOf(id)).toBe(ordinal)
    }),
    { numRuns: 10 },
  )
})

test('a digest set says which text is new', () => {
  const set = createDigestSet()
  expect(['a', 'b', 'a', '', ''].map((text) => set.add(text))).toEqual([
    true,
    true,
    false,
    true,
    false,
  ])
  expect(set.size).toBe(3)
})

test('an identity index knows 100,000 ids, and takes few octets for each', () => {
  const before = process.memoryUsage().arrayBuffers
  const index = createIdentityIndex()
  for (let number = 0; number < MANY; number += 1) index.add(`user-${number}`)
  const octets = process.memoryUsage().arrayBuffers - before
  for (let number = 0; number < MANY; number += 997) {
    expect(index.ordinalOf(`user-${number}`)).toBe(number)
    expect(index.add(`user-${number}`)).toBeUndefined()
  }
  expect(index.ordinalOf('nobody')).toBeUndefined()
  expect(index.size).toBe(MANY)
  expect(octets / MANY).toBeLessThan(MAX_OCTETS_EACH)
})
