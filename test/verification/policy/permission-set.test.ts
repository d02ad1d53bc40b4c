import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { PermissionSet } from '../../../src/verification/policy/identity.js'

describe('a set of permissions', () => {
  it('is a Set that holds each name once, in the order given', () => {
    const set = new PermissionSet(['b', 'a', 'b'])
    expect([...set]).toEqual(['b', 'a'])
    expect(set).toBeInstanceOf(Set)
    expect(set.size).toBe(2)
    expect(new PermissionSet([]).size).toBe(0)
  })

  it('is read by JSON as a list, and by a person as a set', () => {
    const set = new PermissionSet(['a', 'b'])
    expect(JSON.stringify({ set })).toBe('{"set":["a","b"]}')
    expect(inspect(set)).toBe("PermissionSet(2) [Set] { 'a', 'b' }")
    expect(structuredClone(set)).toEqual(new Set(['a', 'b']))
  })

  type Attempt = (set: Set<string>) => unknown
  it.each<[string, Attempt]>([
    ['add', (set) => set.add('c')],
    ['delete', (set) => set.delete('a')],
    ['clear', (set) => set.clear()],
    ['what forEach hands over', (set) => set.forEach((_value, _key, all) => void all.add('c'))],
    ['another has', (set) => Object.assign(set, { has: () => true })],
  ])('cannot be changed by %s', (_way, attempt) => {
    const set = new PermissionSet(['a', 'b'])
    expect(() => attempt(set)).toThrow(TypeError)
    expect([...set]).toEqual(['a', 'b'])
  })
})
