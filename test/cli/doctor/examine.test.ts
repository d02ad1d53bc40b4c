import { describe, expect, it } from 'vitest'
import { clockOffset } from '../../../src/cli/doctor/examine.js'

const DATE = 'Sun, 22 Nov 2026 05:00:10 GMT'
const AT = Date.parse(DATE)

const offset = (
  askedAt: number,
  answeredAt: number,
  headers: Record<string, string> = { date: DATE },
) => clockOffset({ headers: new Headers(headers), requestedAt: askedAt, answeredAt })

describe('the difference of the clocks', () => {
  it.each([
    [0, 0, 100],
    [0, 900, 1000],
    [0, -500, 1500],
    [1, -400, -1],
    [60, -60_100, -60_000],
    [-1, 1001, 1100],
    [-60, 61_000, 61_100],
  ])(
    'is at least %d s when asked %d and answered %d ms past its date',
    (seconds, asked, answered) => {
      expect(offset(AT + asked, AT + answered)).toBe(seconds)
    },
  )

  it('counts the age of a response from a cache', () => {
    expect(offset(AT + 30_500, AT + 30_600, { date: DATE, age: '30' })).toBe(0)
    expect(offset(AT + 500, AT + 600, { date: DATE, age: '30' })).toBe(30)
    expect(offset(AT + 500, AT + 600, { date: DATE, age: 'x' })).toBe(0)
  })

  it('is unknown without a date', () => {
    expect(offset(AT, AT, {})).toBeUndefined()
    expect(offset(AT, AT, { date: 'soon' })).toBeUndefined()
  })
})
