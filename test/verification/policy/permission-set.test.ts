import { inspect } from 'node:util'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { permissionSet } from '../../../src/verification/policy/permission-set.js'

describe('a set of permissions', () => {
  it('holds each name once, in the order given', () => {
    const set = permissionSet(['b', 'a', 'b'])
    expect([...set]).toEqual(['b', 'a'])
    expect(set.size).toBe(2)
    expect(set.has('a')).toBe(true)
    expect(set.has('c')).toBe(false)
    expect(permissionSet([]).size).toBe(0)
  })

  it('reads like a Set', () => {
    const set = permissionSet(['a', 'b'])
    const like = new Set(['a', 'b'])
    expect([...set.keys()]).toEqual([...like.keys()])
    expect([...set.values()]).toEqual([...like.values()])
    expect([...set.entries()]).toEqual([...like.entries()])
    expect(new Set(set)).toEqual(like)
    const seen: unknown[][] = []
    set.forEach(function (this: unknown, ...given) {
      seen.push([this, ...given])
    }, 'this')
    expect(seen).toEqual([
      ['this', 'a', 'a', set],
      ['this', 'b', 'b', set],
    ])
    expect(seen[0]?.[3]).toBe(set)
  })

  it('reads the same through a proxy or an object made from it', () => {
    const set = permissionSet(['a', 'b'])
    for (const other of [new Proxy(set, {}), Object.create(set) as typeof set]) {
      expect([...other]).toEqual(['a', 'b'])
      expect(other.has('a')).toBe(true)
      expect(other.size).toBe(2)
    }
  })

  it('is read by JSON as a list, and by a person as a set', () => {
    const set = permissionSet(['a', 'b'])
    expect(JSON.stringify({ set })).toBe('{"set":["a","b"]}')
    expect(inspect(set)).toBe("PermissionSet(2) { 'a', 'b' }")
    expect(inspect(set, { colors: true })).toContain("\u001b[32m'a'")
    expect(inspect({ deep: { set } }, { depth: 0 })).toBe('{ deep: [Object] }')
  })

  it('is the same object for the same names, whatever becomes of what it was made of', () => {
    const names = ['a', 'b']
    const set = permissionSet(names)
    names.push('c')
    expect([...set]).toEqual(['a', 'b'])
    permissionSet(['another'])
    expect(permissionSet(['a', 'b'])).toBe(set)
    expect([...permissionSet(['a,b'])]).toEqual(['a,b'])
    expect([...permissionSet(['b', 'a'])]).toEqual(['b', 'a'])
    expect([...permissionSet(['\ud800'])]).not.toEqual([...permissionSet(['\\ud800'])])
  })

  it('is right however many others there are', () => {
    for (let index = 0; index < 1000; index += 1) {
      expect([...permissionSet([`p${index}`])]).toEqual([`p${index}`])
    }
    expect([...permissionSet(['a', 'b'])]).toEqual(['a', 'b'])
  })

  it('is kept for a few hundred lists, and no more', () => {
    const first = permissionSet(['kept for a while'])
    expect(permissionSet(['kept for a while'])).toBe(first)
    for (let n = 0; n < 256; n += 1) permissionSet([`another ${n}`])
    expect(permissionSet(['kept for a while'])).not.toBe(first)
  })

  it('takes nothing from a prototype that somebody has changed', () => {
    const prototype = Array.prototype as { toJSON?: () => string }
    prototype.toJSON = () => 'list'
    try {
      expect([...permissionSet(['admin'])]).toEqual(['admin'])
      expect([...permissionSet(['read'])]).toEqual(['read'])
    } finally {
      delete prototype.toJSON
    }
  })
})

describe('a set of permissions cannot be changed', () => {
  type Attack = (set: Set<string>) => unknown
  it.each<[string, Attack]>([
    ['its own add', (set) => set.add('c')],
    ['its own delete', (set) => set.delete('a')],
    ['its own clear', (set) => set.clear()],
    ['add of Set', (set) => Set.prototype.add.call(set, 'c')],
    ['delete of Set', (set) => Set.prototype.delete.call(set, 'a')],
    ['clear of Set', (set) => Set.prototype.clear.call(set)],
    ['what forEach hands over', (set) => set.forEach((_value, _key, all) => void all.add('c'))],
    ['another has', (set) => Object.assign(set, { has: () => true })],
    ['its prototype', (set) => Object.assign(Object.getPrototypeOf(set), { has: () => true })],
    ['another prototype', (set) => Object.setPrototypeOf(set, { has: () => true })],
    ['every object below it', (set) => pushEverywhere(set)],
  ])('by %s', (_way, attack) => {
    const set = permissionSet(['a', 'b'])
    expect(() => attack(set as unknown as Set<string>)).toThrow(TypeError)
    expect([...set]).toEqual(['a', 'b'])
    expect(set.has('c')).toBe(false)
  })

  function pushEverywhere(set: object): void {
    for (const name of Reflect.ownKeys(set)) {
      const value: unknown = Reflect.get(set, name)
      if (Array.isArray(value)) value.push('c')
    }
  }

  it('by what it returns', () => {
    const set = permissionSet(['a', 'b']) as unknown as SetWithMethods
    set.union(new Set(['c'])).add('d')
    set.difference(new Set()).delete('a')
    expect([...(set as unknown as Set<string>)]).toEqual(['a', 'b'])
  })
})

interface SetWithMethods {
  union(other: unknown): Set<string>
  intersection(other: unknown): Set<string>
  difference(other: unknown): Set<string>
  symmetricDifference(other: unknown): Set<string>
  isSubsetOf(other: unknown): boolean
  isSupersetOf(other: unknown): boolean
  isDisjointFrom(other: unknown): boolean
}

describe('the methods that compare sets', () => {
  const methods = (set: unknown): SetWithMethods => set as SetWithMethods
  const set = methods(permissionSet(['a', 'b']))

  it('are there on every Node', () => {
    expect([...set.union(new Set(['b', 'c']))]).toEqual(['a', 'b', 'c'])
    expect([...set.intersection(new Set(['b', 'c']))]).toEqual(['b'])
    expect([...set.difference(new Set(['b', 'c']))]).toEqual(['a'])
    expect([...set.symmetricDifference(new Set(['b', 'c']))]).toEqual(['a', 'c'])
    expect(set.isSubsetOf(new Set(['a', 'b', 'c']))).toBe(true)
    expect(set.isSubsetOf(new Set(['a', 'c', 'd']))).toBe(false)
    expect(set.isSupersetOf(new Set(['b']))).toBe(true)
    expect(set.isSupersetOf(new Set(['c']))).toBe(false)
    expect(set.isDisjointFrom(new Set(['c']))).toBe(true)
    expect(set.isDisjointFrom(new Set(['b']))).toBe(false)
  })

  it('take what is like a set, be it a map or a set of permissions, and nothing else', () => {
    expect(set.isSubsetOf(new Map([...'ab'].map((name) => [name, 1])))).toBe(true)
    expect(set.isSupersetOf(permissionSet(['a']))).toBe(true)
    expect([...set.union({ size: 1, has: () => false, keys: () => ['c'].values() })]).toEqual([
      'a',
      'b',
      'c',
    ])
    const [has, keys] = [() => true, () => [].values()]
    const lacking = [
      { size: 1, has },
      { size: 1, keys },
      { has, keys },
    ]
    for (const other of [['a'], 'a', undefined, null, {}, ...lacking]) {
      for (const name of METHODS) {
        expect(() => set[name](other)).toThrow(new TypeError('expected a set'))
      }
    }
  })

  // Node has them from 22 on.
  const compare = 'union' in Set.prototype ? it : () => {}
  compare('do what those of Set do', () => {
    const names = fc.uniqueArray(fc.constantFrom(...'abcdef'))
    fc.assert(
      fc.property(names, names, (ours, theirs) => {
        const [mine, native] = [methods(permissionSet(ours)), methods(new Set(ours))]
        const other = new Set(theirs)
        for (const name of METHODS) expect(mine[name](other)).toEqual(native[name](other))
        const [fromMine, fromNative] = [permissionSet(ours), new Set(ours)]
        for (const name of METHODS) {
          expect(methods(other)[name](fromMine)).toEqual(methods(other)[name](fromNative))
        }
      }),
    )
  })

  const METHODS = [
    'union',
    'intersection',
    'difference',
    'symmetricDifference',
    'isSubsetOf',
    'isSupersetOf',
    'isDisjointFrom',
  ] as const
})
