import { describe, expect, it } from 'vitest'
import { createTokenCache, digestOf } from '../../../src/verification/token/accepted-tokens.js'

describe('the token cache', () => {
  it('gives back what was put in, until it is deleted', () => {
    const cache = createTokenCache<{ n: number }>(10)
    const entry = { n: 1 }
    cache.set('a', entry, 500)
    expect(cache.get('a')).toBe(entry)
    expect(cache.get('b')).toBeUndefined()
    cache.delete('a')
    expect(cache.get('a')).toBeUndefined()
  })

  it('holds as many entries as it may, and lets the one go that was longest out of use', () => {
    const cache = createTokenCache<{ n: number }>(2)
    cache.set('a', { n: 1 }, 500)
    cache.set('b', { n: 2 }, 500)
    cache.get('a')
    cache.set('c', { n: 3 }, 500)
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([
      { n: 1 },
      undefined,
      { n: 3 },
    ])
  })

  it('holds as many KiB of tokens as it may hold entries', () => {
    const cache = createTokenCache<{ n: number }>(16)
    for (const name of ['a', 'b', 'c']) cache.set(name, { n: 1 }, 8192)
    expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([
      undefined,
      { n: 1 },
      { n: 1 },
    ])
  })

  it('of one entry holds even the longest token', () => {
    const cache = createTokenCache<{ n: number }>(1)
    cache.set('a', { n: 1 }, 8192)
    expect(cache.get('a')).toEqual({ n: 1 })
  })

  it('of none remembers nothing', () => {
    const cache = createTokenCache<{ n: number }>(0)
    cache.set('a', { n: 1 }, 1)
    cache.delete('a')
    expect(cache.get('a')).toBeUndefined()
  })
})

it('a digest is of 256 bits, and does not hold the token', () => {
  expect(digestOf('a.b.c')).toHaveLength(32)
  expect(digestOf('a.b.c')).not.toBe(digestOf('a.b.d'))
  expect(digestOf('é')).not.toBe(digestOf('e'))
})
