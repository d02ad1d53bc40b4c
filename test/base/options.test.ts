import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  integerBetween,
  isObject,
  lazy,
  nonEmptyString,
  optionsObject,
  parseOptions,
  storeWith,
} from '../../src/base/options.js'
import { memoryStore, requireIdempotencyKey, requireSingleUse } from '../../src/index.js'

const schema = lazy(() =>
  optionsObject({
    name: nonEmptyString(),
    size: integerBetween(1, 9).default(3),
    store: storeWith<{ get(): void; put(): void }>(['get', 'put']).optional(),
  }),
)

const faultOf = (input: unknown): string => {
  try {
    parseOptions('test options', schema, input)
    return ''
  } catch (error) {
    expect(error).toBeInstanceOf(TypeError)
    return (error as Error).message
  }
}

describe('options', () => {
  it('come back with their defaults, and never with what somebody has put on all objects', () => {
    const parsed = () => parseOptions('test options', schema, { name: 'a' })
    expect(parsed()).toEqual({ name: 'a', size: 3 })
    const prototype = Object.prototype as { size?: unknown }
    prototype.size = 9
    try {
      expect(parsed().size).toBe(3)
    } finally {
      delete prototype.size
    }
  })

  it('are refused in a few words when they are a request', () => {
    expect(faultOf(new IncomingMessage(new Socket()))).toBe(
      'test options: got a request: call the function, and use what it returns as the middleware',
    )
  })

  it('are refused in a few words when they are a store', () => {
    const mistake = 'got a store: pass { store }'
    for (const guard of [requireIdempotencyKey, requireSingleUse])
      expect(() => guard(memoryStore() as never)).toThrow(mistake)
    expect(faultOf({ run: () => {}, consume: () => {} })).toContain(mistake)
    expect(faultOf({ reserve: () => {} })).toContain(mistake)
  })

  it('have each fault named once', () => {
    const list = lazy(() =>
      optionsObject({
        list: z.array(z.string(), { error: 'must be a list' }).max(1, { error: 'must be a list' }),
      }),
    )
    expect(() => parseOptions('x', list, { list: 'long' })).toThrow(/^x: list must be a list$/)
  })

  it('may be a store whose functions its class has', () => {
    class Store {
      get(): void {}
      put(): void {}
    }
    expect(faultOf({ name: 'a', store: new Store() })).toBe('')
    expect(faultOf({ name: 'a', store: null })).toContain('get, put')
  })
})

it('a record is an object that is no list', () => {
  expect([{}, Object.create(null), new Map()].every(isObject)).toBe(true)
  expect([null, undefined, [], 'x', 1, () => {}].some(isObject)).toBe(false)
})
