import { expect, it } from 'vitest'
import { readClock } from '../../src/base/clock.js'

it('a clock is read for its milliseconds', () => {
  expect(readClock(() => 1.5)).toBe(1.5)
  expect(readClock(() => -1)).toBe(-1)
})

it('a clock that gives no time is a TypeError', () => {
  for (const time of [
    Number.NaN,
    Number.POSITIVE_INFINITY,
    '1',
    null,
    undefined,
    new Date(),
    1n,
    Promise.resolve(1),
  ]) {
    expect(() => readClock(() => time as number)).toThrow(TypeError)
  }
})
