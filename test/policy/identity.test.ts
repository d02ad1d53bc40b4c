import { describe, expect, test } from 'vitest'
import { freezeClaims, permissionSet } from '../../src/policy/identity.js'

describe('a set of permissions', () => {
  test('can be read like any set', () => {
    const set = permissionSet(['a', 'b', 'a'])
    expect(set).toBeInstanceOf(Set)
    expect([...set]).toEqual(['a', 'b'])
    expect(set.has('a')).toBe(true)
    expect(set.size).toBe(2)
    expect(new Set(set)).toEqual(new Set(['a', 'b']))
  })

  test('cannot be changed through its methods, nor be given others', () => {
    const set = permissionSet(['a']) as Set<string>
    for (const change of [() => set.add('b'), () => set.delete('a'), () => set.clear()]) {
      expect(change).toThrow(TypeError)
    }
    expect(() => Object.assign(set, { has: () => true })).toThrow(TypeError)
    expect([...set]).toEqual(['a'])
  })
})

describe('frozen claims', () => {
  test('have no prototype at any depth, and lists stay lists', () => {
    const claims = freezeClaims(JSON.parse('{"a":{"b":[{"c":1}]},"__proto__":{"d":2}}'))
    expect(Object.getPrototypeOf(claims)).toBeNull()
    const { a } = claims as { a: { b: [object] } }
    expect(Object.getPrototypeOf(a)).toBeNull()
    expect(Array.isArray(a.b)).toBe(true)
    expect(Object.getPrototypeOf(a.b[0])).toBeNull()
    expect(Object.isFrozen(a.b)).toBe(true)
    expect(() => a.b.push({})).toThrow(TypeError)
    expect(claims['d']).toBeUndefined()
    expect(Object.keys(claims)).toEqual(['a', '__proto__'])
  })

  test('may nest as deeply as they like', () => {
    const depth = 100_000
    const claims = freezeClaims(JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`))
    let value: unknown = claims
    for (let level = 0; level < depth; level += 1) {
      expect(Object.isFrozen(value)).toBe(true)
      value = (value as Record<string, unknown>)['a']
    }
    expect(value).toBe(1)
  })
})
