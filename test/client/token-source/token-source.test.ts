import { AsyncLocalStorage } from 'node:async_hooks'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { startIdentityCore } from '../../support/core/identity-core/identity-core.js'
import { manualClock } from '../../support/manual-clock.js'
import { API_KEY } from '../claims.js'
import { failure, sourceAt, tokenOf } from '../kit.js'
import { hangs, mints, startLyingCore } from '../lying-core.js'

const HOUR_MS = 3_600_000

/** Another core would only be another clock, and its keys take long to make. */
let coreIsAheadMs = 0

const core = await startIdentityCore({ apiKey: API_KEY, clock: () => Date.now() + coreIsAheadMs })
afterAll(() => core.close())

/** A source of the core's, and the `fetch` that it has. */
function countedSource(more: Parameters<typeof sourceAt>[1] = {}) {
  const clock = manualClock(0)
  const counted = vi.fn(fetch)
  return { source: sourceAt(core.url, { fetch: counted, clock, ...more }), clock, counted }
}

describe('a token of the core', () => {
  it('has the claims that were asked for, an identifier and the validity', async () => {
    const { source } = countedSource({ validitySeconds: 600 })
    const token = await tokenOf(source)
    expect(decodeProtectedHeader(token)).toEqual({
      alg: 'RS256',
      kid: expect.stringMatching(/^d-/),
      typ: 'JWT',
    })
    const claims = decodeJwt(token)
    expect(claims).toEqual({
      iss: 'https://api.example.com',
      aud: 'orders',
      sub: 'billing',
      source: 'microservice',
      token_type: 'service-access',
      permissions: ['orders:read', 'orders:write'],
      jti: expect.stringMatching(/^[\w-]{22}$/),
      iat: expect.any(Number),
      exp: Number(claims.iat) + 600,
    })
  })

  it('serves all calls until 80 % of its life, and its renewal is one request', async () => {
    const { source, clock, counted } = countedSource()
    await source.ready()
    const first = await tokenOf(source)
    clock.advance(239)
    expect(await source.token()).toBe(first)
    expect(counted).toHaveBeenCalledTimes(1)
    clock.advance(1)
    const during = await Promise.all(Array.from({ length: 1000 }, () => source.token()))
    expect(new Set(during)).toEqual(new Set([first]))
    expect(counted).toHaveBeenCalledTimes(2)
    await expect.poll(() => source.health().state).toBe('fresh')
    expect(await tokenOf(source)).not.toBe(first)
    expect(counted).toHaveBeenCalledTimes(2)
  })

  it('is asked for once by a thousand calls that have none', async () => {
    const { source, clock, counted } = countedSource()
    for (const requests of [1, 2]) {
      const tokens = await Promise.all(Array.from({ length: 1000 }, () => source.token()))
      expect(new Set(tokens).size).toBe(1)
      expect(counted).toHaveBeenCalledTimes(requests)
      clock.advance(290)
    }
  })

  it.each([-5 * HOUR_MS, 5 * HOUR_MS])(
    'does not mind a clock of the core that is off',
    async (ms) => {
      coreIsAheadMs = ms
      const { source, clock, counted } = countedSource()
      const token = await tokenOf(source)
      coreIsAheadMs = 0
      clock.advance(239)
      expect(await source.token()).toBe(token)
      expect(counted).toHaveBeenCalledTimes(1)
    },
  )
})

describe('a token that a receiver has refused', () => {
  it('is replaced once for all calls that were refused', async () => {
    const { source, counted } = countedSource()
    const first = await tokenOf(source)
    const kid = await core.rotate()
    const others = await Promise.all(
      Array.from({ length: 1000 }, () => source.token({ after: first })),
    )
    expect(new Set(others).size).toBe(1)
    expect(others[0]).not.toBe(first)
    expect(decodeProtectedHeader(await tokenOf(source)).kid).toBe(kid)
    expect(counted).toHaveBeenCalledTimes(2)
    expect(await source.token({ after: first })).toBe(others[0])
  })

  it('comes back where the core gives no other, and stays in use', async () => {
    const { source, counted } = countedSource()
    const token = await tokenOf(source)
    counted.mockRejectedValue(new TypeError('fetch failed'))
    expect(await source.token({ after: token })).toBe(token)
    expect(await source.token({ after: token })).toBe(token)
    expect(await source.token()).toBe(token)
    expect(counted).toHaveBeenCalledTimes(2)
    expect(source.health()).toMatchObject({ state: 'fresh', lastError: 'core_unreachable' })
  })

  it('has to be a text', async () => {
    const { source } = countedSource()
    await expect(source.token({ after: 7 as never })).rejects.toThrow(TypeError)
  })
})

describe('close', () => {
  it('ends the request under way, and rejects its calls and those after it', async () => {
    const silent = await startLyingCore(hangs)
    const source = sourceAt(silent.url)
    const calls = [source.token(), source.token({ after: 'x' }), source.ready()]
    await expect.poll(() => silent.requests.length).toBe(1)
    source.close()
    source.close()
    for (const call of [...calls, source.token(), source.ready()]) {
      await expect(call).rejects.toMatchObject(failure('closed'))
    }
    expect(source.health()).toEqual({ state: 'closed' })
    expect(silent.requests).toHaveLength(1)
  })

  it('ends a forced renewal, and gives no token that is held', async () => {
    const lying = await startLyingCore(mints())
    const source = sourceAt(lying.url)
    const token = await tokenOf(source)
    lying.lie(hangs)
    const call = source.token({ after: token })
    source.close()
    for (const asked of [call, source.token()]) {
      await expect(asked).rejects.toMatchObject(failure('closed'))
    }
  })
})

it('requests run in the context in which the source was made', async () => {
  const storage = new AsyncLocalStorage<string>()
  const seen: (string | undefined)[] = []
  const observed: typeof fetch = (input, init) => {
    seen.push(storage.getStore())
    return fetch(input, init)
  }
  const source = storage.run('the start', () => sourceAt(core.url, { fetch: observed }))
  await storage.run('a request', () => tokenOf(source))
  expect(seen).toEqual(['the start'])
})

it('a clock that gives no time is a TypeError, and does no harm once it does', async () => {
  let now = Number.NaN
  const { source } = countedSource({ clock: () => now })
  await expect(source.token()).rejects.toThrow(TypeError)
  now = 0
  expect(await tokenOf(source)).toMatch(/^ey/)
})
