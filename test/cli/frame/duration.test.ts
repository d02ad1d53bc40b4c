import { describe, expect, it } from 'vitest'
import { formatExactDuration, parseDuration } from '../../../src/cli/frame/arguments.js'

const RANGE = { minMs: 50, maxMs: 7 * 86_400_000 }

describe('a duration', () => {
  it.each([
    ['50ms', 50],
    ['1s', 1000],
    ['15m', 900_000],
    ['2h', 7_200_000],
    ['7d', 604_800_000],
  ])('of %s is %d ms, and the other way round', (text, ms) => {
    expect(parseDuration('--for', text, RANGE)).toBe(ms)
    expect(formatExactDuration(ms)).toBe(text)
  })

  it.each([
    '',
    '5',
    's',
    '-1s',
    '+1s',
    '1.5s',
    '1e3s',
    ' 1s',
    '1s ',
    '1S',
    '1w',
    '٣s',
    '1234567890s',
  ])('is not %j', (text) => {
    expect(() => parseDuration('--for', text, RANGE)).toThrow(
      '--for must be a number and a unit, such as 250ms, 5s, 15m, 2h or 7d',
    )
  })

  it.each(['49ms', '0s', '8d', '999999999d'])('of %s is out of range', (text) => {
    expect(() => parseDuration('--for', text, RANGE)).toThrow('--for must be from 50ms to 7d')
  })
})
