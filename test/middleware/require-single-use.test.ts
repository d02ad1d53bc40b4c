import { requireSingleUse } from 'express-service-auth'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore } from '../stores/redis/kit.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { INVALID_TOKEN, UNAVAILABLE } from '../support/receiver/refusal-bytes.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { until } from '../support/until.js'

const issuer = await createTestIssuer()
let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(async () => {
  await issuer.close()
  await redis.stop()
})

const newToken = (): string => issuer.token({ jti: crypto.randomUUID() })

describe('the options of requireSingleUse', () => {
  it.each<[unknown, string]>([
    [undefined, 'the options must be an object'],
    [{}, 'store must be a store with consume'],
    [{ store: null }, 'store must be a store with consume'],
    [{ store: { consume: true } }, 'store must be a store with consume'],
    [{ store: { consume: async () => true }, onDecision: 1 }, 'onDecision must be a function'],
    [{ store: { consume: async () => true }, ttl: 1 }, 'ttl is not an option'],
  ])('%j is a TypeError that says: %s', (options, message) => {
    const make = () => requireSingleUse(options as never)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
  })
})

describe.each(EXPRESS_MAJORS)('requireSingleUse on Redis, on $major', ({ express }) => {
  /** Two receivers that share a Redis. */
  const startTwo = () =>
    Promise.all(
      [0, 1].map(() => {
        const { store } = openStore(redis, { timeoutMs: 1000 })
        return startReceiver({
          express,
          mount: (app) => app.use(authFor(issuer.policy()), requireSingleUse({ store })),
        })
      }),
    )

  it('lets one of two hundred uses pass, whichever receiver they come to', async () => {
    const receivers = await startTwo()
    const token = newToken()
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_, index) => receivers[index % 2]?.call(token)),
    )
    const statuses = replies.map((reply) => reply?.status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(statuses.filter((status) => status === 401)).toHaveLength(199)
    expect((receivers[0]?.handled ?? 0) + (receivers[1]?.handled ?? 0)).toBe(1)
  })

  it('answers a replay as any invalid token, after a restart with the data too', async () => {
    const [one, other] = await startTwo()
    const token = newToken()
    expect(await one?.rawWith(`Bearer ${token}`)).toContain(' 200 OK')
    expect(await one?.rawWith(`Bearer ${token}`)).toBe(INVALID_TOKEN)
    await redis.restart()
    await until('Redis is back', async () => (await other?.call(newToken()))?.status === 200)
    expect(await other?.rawWith(`Bearer ${token}`)).toBe(INVALID_TOKEN)
  })

  it('answers 503 while Redis hangs, runs no handler, and comes back by itself', async () => {
    const { store } = openStore(redis)
    const receiver = await startReceiver({
      express,
      mount: (app) => app.use(authFor(issuer.policy()), requireSingleUse({ store })),
    })
    expect((await receiver.call(newToken())).status).toBe(200)
    redis.pause()
    try {
      expect(await receiver.rawWith(`Bearer ${newToken()}`)).toBe(UNAVAILABLE)
      expect(receiver.handled).toBe(1)
    } finally {
      redis.resume()
    }
    await until('it is back', async () => (await receiver.call(newToken())).status === 200)
    expect(receiver.errors).toEqual([])
  })
})
