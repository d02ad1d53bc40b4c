import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { freshnessOf } from '../../../src/verification/key-set/cache-control.js'

const left = (cacheControl: string | null, age: string | null = null): number | undefined =>
  freshnessOf({ cacheControl, age }, 0).leftSeconds

describe('max-age', () => {
  it.each([
    ['max-age=60', 60],
    ['MAX-AGE=60', 60],
    ['public, max-age=60, must-revalidate', 60],
    ['max-age=604800', 604_800],
    ['max-age="60"', 60],
    ['max-age="6\\0"', 60],
    ['max-age=00060', 60],
    [' ,, max-age=60 ,', 60],
    ['private="set-cookie, max-age=1, x", max-age=60', 60],
    ['x="a\\", max-age=1", max-age=60', 60],
    ['s-maxage=9, max-age=60', 60],
    ['max-age=99999999999999999999', 2 ** 31],
  ])('%j says %d seconds', (cacheControl, seconds) => {
    expect(left(cacheControl)).toBe(seconds)
  })

  it.each(['max-age=0', 'max-age=1', 'max-age=9', 'max-age="3"'])(
    '%j counts as ten seconds, so that there is time for a refresh',
    (cacheControl) => {
      expect(left(cacheControl)).toBe(10)
    },
  )

  const UNSAID = ['public', 'max-age', 'max-age=', 'max-age=""', 'max-age=-1', 'max-age=1.5']
  const GARBLED = [
    'max-age=60 public',
    'max-age = 60',
    'max-age="60',
    'x="a, max-age=60',
    'max-age=６０',
  ]
  const OTHERS = ['x-max-age=60', 'private="max-age=60"', 's-maxage=60', 'public max-age=60']
  it.each([null, '', ...UNSAID, ...GARBLED, ...OTHERS])('%j does not say', (cacheControl) => {
    expect(left(cacheControl)).toBeUndefined()
  })

  it('counts the first of several that can be read', () => {
    expect(left('max-age=60, max-age=3600')).toBe(60)
    expect(left('max-age=3600, max-age=60')).toBe(3600)
    expect(left('max-age=soon, max-age=60')).toBe(60)
  })
})

it.each([
  'no-cache',
  'no-store',
  'No-Cache',
  'no-store, max-age=3600',
  'max-age=3600, no-cache',
  'no-cache="set-cookie", max-age=3600',
])('%j counts as ten seconds, whatever stands beside it', (cacheControl) => {
  expect(left(cacheControl)).toBe(10)
})

it('does not take a directive for what only looks like one', () => {
  expect(left('x-no-cache, max-age=60')).toBe(60)
  expect(left('x="no-store", max-age=60')).toBe(60)
})

describe('Age', () => {
  it.each([
    ['50', 50],
    ['0', 100],
    ['100', 10],
    ['100000', 10],
    ['50 , 70', 50],
    ['', 100],
    ['soon', 100],
    ['5.5', 100],
    ['99999999999999999999', 10],
  ])('of %j leaves %d of 100 seconds', (age, seconds) => {
    expect(left('max-age=100', age)).toBe(seconds)
  })

  it('means nothing without max-age', () => {
    expect(left(null, '50')).toBeUndefined()
    expect(left('public', '50')).toBeUndefined()
  })

  it('includes the time that the exchange took', () => {
    expect(freshnessOf({ cacheControl: 'max-age=100', age: '50' }, 20).leftSeconds).toBe(30)
  })
})

describe('a 304', () => {
  const unsaid = { cacheControl: null, age: null }

  it('keeps the earlier max-age where it says nothing', () => {
    expect(freshnessOf(unsaid, 0, 60)).toEqual({ leftSeconds: 60, maxAgeSeconds: 60 })
    expect(freshnessOf({ ...unsaid, age: '20' }, 0, 60).leftSeconds).toBe(40)
  })

  it('keeps an earlier no-store', () => {
    const earlier = freshnessOf({ ...unsaid, cacheControl: 'no-store' }, 0)
    expect(freshnessOf(unsaid, 0, earlier.maxAgeSeconds).leftSeconds).toBe(10)
  })

  it('replaces the earlier max-age by what it says, be it nothing readable', () => {
    expect(freshnessOf({ ...unsaid, cacheControl: 'max-age=90' }, 0, 60).leftSeconds).toBe(90)
    expect(freshnessOf({ ...unsaid, cacheControl: 'public' }, 0, 60).leftSeconds).toBeUndefined()
  })
})

it('reads whatever a server sends, in good time, and never leaves less than ten seconds', () => {
  const piece = fc.constantFrom('max-age', '=', '"', '\\', ',', ' ', '60', 'no-cache', 'x', ';')
  const garbage = fc.oneof(
    fc.string(),
    fc.array(piece).map((pieces) => pieces.join('')),
  )
  fc.assert(
    fc.property(garbage, fc.option(garbage), (cacheControl, age) => {
      const seconds = left(cacheControl, age)
      if (seconds !== undefined) expect(seconds).toBeGreaterThanOrEqual(10)
    }),
    { numRuns: 1000 },
  )
  const startedAt = performance.now()
  for (const unit of ['"\\', '"', '"",', 'max-age="\\"', ',"a']) left(unit.repeat(4000))
  expect(performance.now() - startedAt).toBeLessThan(1000)
})
