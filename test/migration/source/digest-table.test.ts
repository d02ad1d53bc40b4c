import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createDigestTable } from '../../../src/migration/source/digest-table.js'

const MANY = 100_000
const MAX_BYTES_EACH = 110

const id = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 3 }),
  fc.constantFrom('\ud800', '\ud801', '\ufffd', '__proto__'),
)

it('a digest table keeps the first number of each text, as a Map would', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(id, fc.nat({ max: 2 ** 31 - 1 })), { maxLength: 1500 }),
      (given) => {
        const table = createDigestTable()
        const model = new Map<string, number>()
        for (const [text, number] of given) {
          const earlier = model.get(text)
          expect([table.find(text), table.add(text, number)]).toEqual([earlier, earlier])
          if (earlier === undefined) model.set(text, number)
        }
        for (const [text, number] of model) expect(table.find(text)).toBe(number)
      },
    ),
    { numRuns: 10 },
  )
})

it('a digest table finds 100,000 texts, and takes few bytes for each, however long it is', () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const textOf = (number: number): string => `user-${number}-${'x'.repeat(500)}`
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  const table = createDigestTable()
  for (let number = 0; number < MANY; number += 1) table.add(textOf(number), number)
  collectGarbage()
  const bytes = process.memoryUsage().heapUsed - before
  const wrong: number[] = []
  for (let number = 0; number < MANY; number += 1) {
    if (table.find(textOf(number)) !== number) wrong.push(number)
  }
  expect(wrong).toEqual([])
  expect(table.add(textOf(5), 7)).toBe(5)
  expect(table.find('nobody')).toBeUndefined()
  expect(bytes / MANY).toBeLessThan(MAX_BYTES_EACH)
})
