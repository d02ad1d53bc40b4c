import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  createDigestSet,
  createIdentityIndex,
} from '../../../src/migration/source/identity-index.js'

const MANY = 100_000
/** With what waits to be collected. */
const MAX_BYTES_EACH = 60

const id = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 3 }),
  fc.constantFrom('\ud800', '\ud801', '\ufffd', '__proto__'),
)

test('an identity index keeps the first ordinal of each id, as a Map would', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(id, fc.nat({ max: 2 ** 31 - 1 })), { maxLength: 1500 }),
      (given) => {
        const index = createIdentityIndex()
        const model = new Map<string, number>()
        for (const [text, ordinal] of given) {
          const earlier = model.get(text)
          expect([index.ordinalOf(text), index.add(text, ordinal)]).toEqual([earlier, earlier])
          if (earlier === undefined) model.set(text, ordinal)
        }
        expect(index.size).toBe(model.size)
        for (const [text, ordinal] of model) expect(index.ordinalOf(text)).toBe(ordinal)
      },
    ),
    { numRuns: 10 },
  )
})

test('a digest set says which text is new', () => {
  const set = createDigestSet()
  expect(set.has('a')).toBe(false)
  const added = ['a', 'b', 'a', '', ''].map((text) => set.add(text))
  expect(added).toEqual([true, true, false, true, false])
  expect([set.has('a'), set.has(''), set.has('c'), set.size]).toEqual([true, true, false, 3])
})

test('an identity index knows 100,000 ids, and takes few bytes for each', () => {
  const before = process.memoryUsage().arrayBuffers
  const index = createIdentityIndex()
  for (let ordinal = 0; ordinal < MANY; ordinal += 1) index.add(`user-${ordinal}`, ordinal)
  const bytes = process.memoryUsage().arrayBuffers - before
  const wrong: number[] = []
  for (let ordinal = 0; ordinal < MANY; ordinal += 1) {
    if (index.ordinalOf(`user-${ordinal}`) !== ordinal) wrong.push(ordinal)
  }
  expect(wrong).toEqual([])
  expect(index.add('user-5', 7)).toBe(5)
  expect(index.ordinalOf('nobody')).toBeUndefined()
  expect(index.size).toBe(MANY)
  expect(bytes / MANY).toBeLessThan(MAX_BYTES_EACH)
})
