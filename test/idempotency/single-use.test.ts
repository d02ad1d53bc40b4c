import type { SingleUseStore } from 'express-service-auth'
import { describe, expect, it } from 'vitest'
import { Unavailable } from '../../src/base/decision/service-auth-error.js'
import { consume, useOfToken } from '../../src/idempotency/single-use.js'

const NOW = 1_800_000_000
const TOKEN = {
  issuer: 'https://api.example.com',
  caller: 'billing',
  tokenId: 'a-token',
  acceptableUntil: NOW + 305,
}

/** Tells what it is asked, and answers as told. */
function watchedStore(answer: () => unknown = () => true) {
  const asked: { id: string; ttlMs: number }[] = []
  const store: SingleUseStore = {
    async consume(id, ttlMs) {
      asked.push({ id, ttlMs })
      return answer() as boolean
    },
  }
  return { store, asked }
}

/** Uses a token up, as `requireSingleUse` does. */
async function consumeToken(
  token: Parameters<typeof useOfToken>[0],
  store: SingleUseStore,
  now: number,
) {
  const use = useOfToken(token, now)
  return use.ok ? consume(use.value, store) : use.reason
}

async function idOf(changes: Partial<typeof TOKEN>): Promise<string | undefined> {
  const { store, asked } = watchedStore()
  await consumeToken({ ...TOKEN, ...changes }, store, NOW)
  return asked[0]?.id
}

describe('the use of a token', () => {
  it('lets the first use pass, and refuses the next', async () => {
    const first = watchedStore(() => true)
    expect(await consumeToken(TOKEN, first.store, NOW)).toBe(true)
    const second = watchedStore(() => false)
    expect(await consumeToken(TOKEN, second.store, NOW)).toBe(false)
  })

  it('remembers a token for a minute to a quarter of an hour longer than it lives', async () => {
    const { store, asked } = watchedStore()
    await consumeToken(TOKEN, store, NOW)
    await consumeToken(TOKEN, store, NOW + 300.0004)
    for (const [index, livesMs] of [305_000, 4_999.6].entries()) {
      const { ttlMs } = asked[index] ?? { ttlMs: 0 }
      expect(Number.isSafeInteger(ttlMs)).toBe(true)
      expect(ttlMs - livesMs).toBeGreaterThanOrEqual(60_000)
      expect(ttlMs - livesMs).toBeLessThanOrEqual(900_000)
    }
  })

  it.each([undefined, '', 'x'.repeat(257)])('asks no store about the id %j', async (tokenId) => {
    const { store, asked } = watchedStore()
    const refused = await consumeToken({ ...TOKEN, tokenId }, store, NOW)
    expect(refused).toBe('token_id_missing')
    expect(asked).toEqual([])
  })

  it.each(['x', 'x'.repeat(256), ' ', '\0', '\ud800'])('takes the id %j', async (tokenId) => {
    expect(await idOf({ tokenId })).toBeTypeOf('string')
  })

  it('names a token by all of issuer, caller and id, and by nothing that can be read', async () => {
    const ids = await Promise.all([
      idOf({}),
      idOf({ issuer: 'https://api.example.org' }),
      idOf({ caller: 'reporting' }),
      idOf({ tokenId: 'another' }),
      idOf({ caller: 'billinga-', tokenId: 'token' }),
      idOf({ tokenId: '\ud800' }),
      idOf({ tokenId: '\ud801' }),
    ])
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) expect(id).toMatch(/^[\w-]{22,}$/)
  })

  it('does not know when the store fails', async () => {
    const cause = new Error('down')
    const { store } = watchedStore(() => {
      throw cause
    })
    const error = await consumeToken(TOKEN, store, NOW).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(Unavailable)
    expect(error).toMatchObject({ what: 'store', cause })
  })

  it.each([undefined, null, 1, 'true', {}])(
    'takes %j of a store for the programming error that it is',
    async (answer) => {
      const { store } = watchedStore(() => answer)
      await expect(consumeToken(TOKEN, store, NOW)).rejects.toMatchObject({ code: 'internal' })
    },
  )
})
