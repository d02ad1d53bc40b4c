import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import { PermissionSet, permissionList } from '../../../src/verification/policy/identity.js'

describe('a list of permissions', () => {
  it('is the same one for the same names, whatever becomes of what it was made of', () => {
    const names = ['a', 'b']
    const list = permissionList(names)
    names.push('c')
    expect(list).toEqual(['a', 'b'])
    expect(Object.isFrozen(list)).toBe(true)
    expect(permissionList(['a', 'b'])).toBe(list)
    expect(permissionList(['a,b'])).toEqual(['a,b'])
    expect(permissionList(['b', 'a'])).toEqual(['b', 'a'])
    expect(permissionList(['\ud800'])).not.toEqual(permissionList(['\\ud800']))
  })

  it('is kept for a few hundred lists, and no more', () => {
    const first = permissionList(['kept for a while'])
    expect(permissionList(['kept for a while'])).toBe(first)
    for (let n = 0; n < 256; n += 1) permissionList([`another ${n}`])
    expect(permissionList(['kept for a while'])).not.toBe(first)
  })
})

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
