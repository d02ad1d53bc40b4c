import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  flag,
  functionOf,
  integerBetween,
  isObject,
  lazy,
  nonEmptyString,
  numberBetween,
  optionsObject,
  parseOptions,
  storeWith,
} from '../../src/base/options.js'

const schema = lazy(() =>
  optionsObject({
    name: nonEmptyString(),
    size: integerBetween(1, 9).default(3),
    share: numberBetween(0, 1, 'parts').optional(),
    on: flag().optional(),
    run: functionOf<() => void>().optional(),
    inner: optionsObject({ list: z.array(nonEmptyString()) }).optional(),
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
  it('come back with their defaults', () => {
    expect(parseOptions('test options', schema, { name: 'a' })).toEqual({ name: 'a', size: 3 })
  })

  it('are never inherited from what somebody has put on all objects', () => {
    const prototype = Object.prototype as { size?: unknown }
    prototype.size = 9
    try {
      expect(parseOptions('test options', schema, { name: 'a' }).size).toBe(3)
    } finally {
      delete prototype.size
    }
  })

  it('are refused with every fault in one message, each under its path', () => {
    const message = faultOf({
      name: '',
      size: 1.5,
      share: Number.NaN,
      on: 1,
      run: 'x',
      inner: { list: ['a', ''], more: 1 },
      store: { get() {} },
      extra: 1,
    })
    expect(message).toMatch(/^test options: /)
    for (const path of [
      'name',
      'size',
      'share',
      'on',
      'run',
      'inner.list[1]',
      'inner.more',
      'store',
      'extra',
    ]) {
      expect(message).toMatch(new RegExp(`(^|[ ;:])${path.replace(/[[\].]/g, '\\$&')} (must|is)`))
    }
  })

  it('are refused when they are no object', () => {
    for (const input of [undefined, null, 1, 'x', [], () => {}]) {
      expect(faultOf(input)).toBe('test options: the options must be an object')
    }
  })

  it('are refused in a few words when they are a request', () => {
    expect(faultOf(new IncomingMessage(new Socket()))).toBe(
      'test options: got a request: call the function, and use what it returns as the middleware',
    )
  })

  it('have each fault named once', () => {
    const list = lazy(() =>
      optionsObject({
        list: z.array(z.string(), { error: 'must be a list' }).max(1, { error: 'must be a list' }),
      }),
    )
    expect(() => parseOptions('x', list, { list: 'long' })).toThrow(/^x: list must be a list$/)
  })

  it('are refused for what contradicts, beside what is faulty', () => {
    const contradictions = (): string[] => ['a beside b']
    const parse = (input: unknown): unknown => parseOptions('x', schema, input, contradictions)
    expect(() => parse({ name: 'a' })).toThrow('x: a beside b')
    expect(() => parse({ name: '' })).toThrow('name must be a non-empty string; a beside b')
    expect(() => parse(undefined)).toThrow(/^x: the options must be an object$/)
  })

  it('never have their values repeated', () => {
    expect(faultOf({ name: 5, size: 'secret', inner: 'secret' })).not.toContain('secret')
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
