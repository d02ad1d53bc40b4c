import { describe, expect, it } from 'vitest'
import { allow, type Decision, deny } from '../../../src/base/decision/reason.js'
import {
  createAcceptedTokens,
  createTokenCache,
  digestOf,
} from '../../../src/verification/token/accepted-tokens.js'

type Verified = { readonly expiresIn: number }
const VERIFIED: Verified = { expiresIn: 60 }
const ACCEPTED = allow(VERIFIED)

const create = (max = 10, isStillValid = (_verified: Verified) => true) =>
  createAcceptedTokens<Verified>({ max, isStillValid })

describe('accepted tokens', () => {
  it('are found again, and counted', async () => {
    const tokens = create()
    expect(tokens.find('digest')).toBeUndefined()
    expect(await tokens.decide('token', 'digest', async () => ACCEPTED)).toBe(ACCEPTED)
    expect(tokens.find('digest')).toBe(ACCEPTED)
    expect(tokens.find('digest')).toBe(ACCEPTED)
    expect(tokens.find('other')).toBeUndefined()
    expect(tokens.health()).toEqual({ entries: 1, max: 10, hits: 2, misses: 1 })
  })

  it('do not include a refused one, which is decided on again', async () => {
    const tokens = create()
    const refused = deny('token_expired')
    expect(await tokens.decide('token', 'digest', async () => refused)).toBe(refused)
    expect(tokens.find('digest')).toBeUndefined()
    expect(await tokens.decide('token', 'digest', async () => ACCEPTED)).toBe(ACCEPTED)
    expect(tokens.health()).toEqual({ entries: 1, max: 10, hits: 0, misses: 2 })
  })

  it('share a decision if they are equal and arrive together, and no other', async () => {
    const tokens = create()
    const settle: ((decision: Decision<Verified>) => void)[] = []
    const decide = (digest: string) =>
      tokens.decide('token', digest, () => new Promise((resolve) => settle.push(resolve)))
    const decisions = [decide('a'), decide('a'), decide('b')]
    expect(settle).toHaveLength(2)
    const other = allow({ expiresIn: 5 })
    settle[0]?.(ACCEPTED)
    settle[1]?.(other)
    expect(await Promise.all(decisions)).toEqual([ACCEPTED, ACCEPTED, other])
    expect(tokens.health()).toMatchObject({ entries: 2, hits: 0, misses: 3 })
  })

  it('are decided on again after a decision that failed', async () => {
    const tokens = create()
    const error = new Error('unreachable')
    await expect(tokens.decide('token', 'a', () => Promise.reject(error))).rejects.toBe(error)
    expect(await tokens.decide('token', 'a', async () => ACCEPTED)).toBe(ACCEPTED)
  })

  it('are forgotten once they are no longer valid', async () => {
    let isValid = true
    const tokens = create(10, (verified) => isValid && verified === VERIFIED)
    await tokens.decide('token', 'digest', async () => ACCEPTED)
    expect(tokens.find('digest')).toBe(ACCEPTED)
    isValid = false
    expect(tokens.find('digest')).toBeUndefined()
    expect(tokens.health()).toEqual({ entries: 0, max: 10, hits: 1, misses: 1 })
  })

  it('take as much room as they are long', async () => {
    const tokens = create(8)
    for (const digest of ['a', 'b']) {
      await tokens.decide('x'.repeat(8000), digest, async () => ACCEPTED)
    }
    expect([tokens.find('a'), tokens.find('b')]).toEqual([undefined, ACCEPTED])
  })

  it('are none where none may be cached', async () => {
    const tokens = create(0)
    await tokens.decide('token', 'digest', async () => ACCEPTED)
    expect(tokens.find('digest')).toBeUndefined()
    expect(tokens.health()).toEqual({ entries: 0, max: 0, hits: 0, misses: 1 })
  })
})

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
    expect(cache.get('a')).toBeUndefined()
    cache.delete('a')
    expect(cache.size).toBe(0)
  })
})

it('a digest is of 256 bits, and does not hold the token', () => {
  expect(digestOf('a.b.c')).toHaveLength(32)
  expect(digestOf('a.b.c')).not.toBe(digestOf('a.b.d'))
  expect(digestOf('é')).not.toBe(digestOf('e'))
})
