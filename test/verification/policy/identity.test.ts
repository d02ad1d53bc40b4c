import { inspect } from 'node:util'
import { describe, expect, it } from 'vitest'
import {
  createIdentity,
  freezeClaims,
  PermissionSet,
  permissionsOf,
  withPermissions,
} from '../../../src/verification/policy/identity.js'

describe('an identity', () => {
  const facts = {
    name: 'billing',
    permissions: ['a', 'b'],
    issuer: 'i',
    audience: 'a',
    tokenId: undefined,
    issuedAt: 5,
    expiresAt: 9,
    keyId: 'k',
    binding: 'none' as const,
    payload: '{"x":[1],"y":{"z":2}}',
  }

  it('has what it was given, and claims once they are asked for', () => {
    const identity = createIdentity(facts)
    const { tokenId: _none, binding: _unbound, payload, ...present } = facts
    const permissions = new Set(['a', 'b'])
    expect({ ...identity, permissions: new Set(identity.permissions) }).toEqual({
      ...present,
      permissions,
      claims: { x: [1], y: { z: 2 } },
    })
    expect(Object.keys(identity)).not.toContain('tokenId')
    expect(identity.claims).toBe(identity.claims)
    expect(JSON.parse(JSON.stringify(identity))).toMatchObject({
      permissions: ['a', 'b'],
      claims: { x: [1] },
    })
  })

  it('has a token id if the token has one, and no issuedAt if it has none', () => {
    const identity = createIdentity({ ...facts, tokenId: 't', issuedAt: undefined })
    expect({ ...identity }.tokenId).toBe('t')
    expect(Object.keys(identity)).not.toContain('issuedAt')
  })

  it('is the same with fewer permissions', () => {
    const bound = { kind: 'dpop', thumbprint: 't' } as const
    const identity = createIdentity({ ...facts, tokenId: 't', binding: bound })
    const fewer = withPermissions(identity, ['b'])
    const plain = ({ permissions, ...rest }: typeof identity) => ({
      ...rest,
      all: [...permissions],
    })
    expect(plain(fewer)).toEqual({ ...plain(identity), all: ['b'] })
    expect(permissionsOf(fewer)).toEqual(['b'])
    expect(permissionsOf(identity)).toEqual(['a', 'b'])
  })

  it('cannot be changed, nor can its claims', () => {
    const identity = createIdentity(facts) as unknown as { name: string; claims: { x: number[] } }
    expect(() => {
      identity.name = 'other'
    }).toThrow(TypeError)
    expect(() => {
      identity.claims = { x: [] }
    }).toThrow(TypeError)
    expect(() => identity.claims.x.push(2)).toThrow(TypeError)
    expect(Object.isFrozen(identity)).toBe(true)
    expect(Object.getPrototypeOf(identity.claims)).toBeNull()
  })
})

describe('frozen claims', () => {
  it('have no prototype at any depth, and lists stay lists', () => {
    const claims = freezeClaims(
      JSON.parse('{"a":{"b":[{"c":1}]},"n":null,"s":"text","__proto__":{"d":2}}'),
    )
    expect(Object.getPrototypeOf(claims)).toBeNull()
    const { a } = claims as { a: { b: [object] } }
    expect(Object.getPrototypeOf(a)).toBeNull()
    expect(Object.getPrototypeOf(a.b)).toBe(Array.prototype)
    expect(Object.getPrototypeOf(a.b[0])).toBeNull()
    expect(Object.isFrozen(a.b)).toBe(true)
    expect(() => a.b.push({})).toThrow(TypeError)
    expect(claims['d']).toBeUndefined()
    expect(Object.keys(claims)).toEqual(['a', 'n', 's', '__proto__'])
  })

  it('may nest as deeply as they like', () => {
    const depth = 100_000
    const claims = freezeClaims(JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`))
    let value: unknown = claims
    let frozen = 0
    for (let level = 0; level < depth; level += 1) {
      if (Object.isFrozen(value)) frozen += 1
      value = (value as Record<string, unknown>)['a']
    }
    expect(frozen).toBe(depth)
    expect(value).toBe(1)
  })
})

describe('a set of permissions', () => {
  it('is read by JSON as a list, and by a person as a set', () => {
    const set = new PermissionSet(['a', 'b'])
    expect(JSON.stringify({ set })).toBe('{"set":["a","b"]}')
    // Node 24 leaves out [Set].
    expect(inspect(set)).toMatch(/^PermissionSet\(2\) (\[Set\] )?\{ 'a', 'b' \}$/)
    expect(structuredClone(set)).toEqual(new Set(['a', 'b']))
  })
})
