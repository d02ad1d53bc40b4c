import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { createDigestTable } from '../../../src/migration/source/digest-table.js'

const MANY = 100_000
const MAX_BYTES_EACH = 110

it('a digest table tells texts apart that are not well formed, and keeps the first number', () => {
  const texts = ['', '\ud800', '\ud801', '\ufffd', '__proto__', 'constructor']
  const table = createDigestTable()
  for (const [number, text] of texts.entries()) expect(table.add(text, number)).toBeUndefined()
  for (const [number, text] of texts.entries()) expect(table.add(text, 9)).toBe(number)
  for (const [number, text] of texts.entries()) expect(table.find(text)).toBe(number)
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
  expect(table.find('nobody')).toBeUndefined()
  expect(bytes / MANY).toBeLessThan(MAX_BYTES_EACH)
})
