import { describe, expect, it } from 'vitest'
import {
  type Ceilings,
  callersOption,
  unreachablePermissions,
} from '../../../src/verification/policy/callers.js'

const parse = (callers: unknown): Ceilings => callersOption().parse(callers)
const isRefused = (callers: unknown): boolean => !callersOption().safeParse(callers).success

describe('the callers of a policy', () => {
  it('have no ceiling in a list, and each their own in a record', () => {
    expect([...parse(['a', 'b'])]).toEqual([
      ['a', undefined],
      ['b', undefined],
    ])
    expect([...parse({ a: ['x', 'y'], b: [] })]).toEqual([
      ['a', new Set(['x', 'y'])],
      ['b', new Set()],
    ])
  })

  it('may be called like members that every object inherits', () => {
    const record = JSON.parse('{"__proto__":["x"],"constructor":["y"]}')
    expect([...parse(record).keys()]).toEqual(['__proto__', 'constructor'])
    expect(parse({ a: [] }).has('toString')).toBe(false)
    expect(parse({ a: [] }).has('__proto__')).toBe(false)
  })

  it('are only those of the record itself', () => {
    expect(isRefused(Object.create({ inherited: ['x'] }))).toBe(true)
  })

  it('are at least one, in both forms', () => {
    expect(isRefused([])).toBe(true)
    expect(isRefused({})).toBe(true)
  })

  it('are not the holes of a list', () => {
    expect(isRefused(new Array(3))).toBe(true)
    // biome-ignore lint/suspicious/noSparseArray: this is the point
    expect(isRefused(['a', , 'b'])).toBe(true)
    expect(isRefused({ a: new Array(1) })).toBe(true)
  })

  it('have names of at least one character', () => {
    expect(isRefused([''])).toBe(true)
    expect(isRefused({ '': ['x'] })).toBe(true)
    expect(isRefused({ a: [''] })).toBe(true)
  })
})

describe('required permissions', () => {
  it('are reachable when one caller may hold all of them', () => {
    const callers = { a: ['x'], b: ['x', 'y'] }
    expect(unreachablePermissions({ callers, permissions: ['y', 'x'] })).toEqual([])
    expect(unreachablePermissions({ callers, permissions: ['z'] })).toHaveLength(1)
    expect(
      unreachablePermissions({ callers: { a: ['x'], c: ['y'] }, permissions: ['x', 'y'] }),
    ).toHaveLength(1)
  })

  it('are always reachable for callers without a ceiling', () => {
    expect(unreachablePermissions({ callers: ['a'], permissions: ['z'] })).toEqual([])
  })

  it('are not judged where the callers or they themselves are faulty', () => {
    for (const faulty of [undefined, null, 1, { a: 'x' }]) {
      expect(unreachablePermissions({ callers: faulty, permissions: ['z'] })).toEqual([])
      expect(unreachablePermissions({ callers: { a: [] }, permissions: faulty })).toEqual([])
    }
  })
})
