import { describe, expect, it } from 'vitest'
import { allow, type Decision, deny } from '../../../src/base/decision/reason.js'
import {
  createAcceptedTokens,
  digestToken,
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
    expect(tokens.decide('token', 'digest', () => refused)).toBe(refused)
    expect(tokens.find('digest')).toBeUndefined()
    expect(await tokens.decide('token', 'digest', async () => ACCEPTED)).toBe(ACCEPTED)
    expect(tokens.health()).toEqual({ entries: 1, max: 10, hits: 0, misses: 3 })
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

  it('make room for another by the one that was longest out of use', async () => {
    const tokens = create(2)
    const accept = (digest: string) => tokens.decide('token', digest, async () => ACCEPTED)
    await Promise.all([accept('a'), accept('b')])
    tokens.find('a')
    await accept('c')
    expect(['a', 'b', 'c'].map(tokens.find)).toEqual([ACCEPTED, undefined, ACCEPTED])
  })

  it.each([
    [1, [undefined, undefined, ACCEPTED]],
    [16, [undefined, ACCEPTED, ACCEPTED]],
  ])('may have %d KiB together, and one may have 8', async (max, found) => {
    const tokens = create(max)
    for (const digest of ['a', 'b', 'c']) {
      await tokens.decide('x'.repeat(8192), digest, async () => ACCEPTED)
    }
    expect(['a', 'b', 'c'].map(tokens.find)).toEqual(found)
  })

  it('are none where none may be cached', async () => {
    const tokens = create(0)
    await tokens.decide('token', 'digest', async () => ACCEPTED)
    expect(tokens.find('digest')).toBeUndefined()
    expect(tokens.health()).toEqual({ entries: 0, max: 0, hits: 0, misses: 1 })
  })
})

it('a digest is of 256 bits, and does not hold the token', () => {
  expect(digestToken('a.b.c')).toHaveLength(32)
  expect(digestToken('a.b.c')).not.toBe(digestToken('a.b.d'))
  expect(digestToken('é')).not.toBe(digestToken('e'))
})
