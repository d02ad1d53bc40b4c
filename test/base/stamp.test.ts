import { describe, expect, test } from 'vitest'
import { createStamp, peek } from '../../src/base/stamp.js'

describe('a stamp', () => {
  test.each([
    ['an object', () => ({})],
    ['a function', () => () => {}],
    ['a frozen list', () => Object.freeze(['a'])],
    ['an object without a prototype', () => Object.create(null)],
  ])('is read from what carries it and from nothing else (%s)', (_name, make) => {
    const stamp = createStamp<string>()
    const carrier = make()
    expect(stamp.get(carrier)).toBeUndefined()
    stamp.set(carrier, 'a')
    stamp.set(carrier, 'b')
    expect(stamp.get(carrier)).toBe('b')
    expect(stamp.get(make())).toBeUndefined()
    expect(createStamp<string>().get(carrier)).toBeUndefined()
    expect(Reflect.ownKeys(carrier)).toEqual(Reflect.ownKeys(make()))
  })

  test.each([undefined, null, 5, 'text', Symbol('s')])('is not on %s', (value) => {
    expect(createStamp().get(value)).toBeUndefined()
    expect(peek(value, 'length')).toBeUndefined()
  })
})
