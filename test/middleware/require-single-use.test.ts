import { requireSingleUse } from 'express-service-auth'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore } from '../stores/redis/kit.js'
import { createTestIssuer } from '../support/issuer/test-issuer.js'
import { EXPRESS_MAJORS } from '../support/receiver/express-majors.js'
import { authFor, startReceiver } from '../support/receiver/receiver.js'
import { UNAVAILABLE } from '../support/receiver/refusal-bytes.js'
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
