import { Redis } from 'ioredis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { EXPRESS_MAJORS } from '../../support/receiver/express-majors.js'
import { type RedisServer, startRedis } from '../../support/redis/redis.js'
import { bodyAbout, type Endpoint, newId, OTHER_TOKEN, openEndpoint } from './kit.js'
import { openSmallCore, type SmallCore } from './small-core.js'

let core: SmallCore
let server: RedisServer
let redis: Redis
const endpoints: Endpoint[] = []

beforeAll(async () => {
  core = await openSmallCore()
  server = await startRedis()
  redis = new Redis(server.url)
})
afterEach(async () => {
  await Promise.all(endpoints.splice(0).map((endpoint) => endpoint.close()))
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
  await core.close()
})

const limiter = (keyPrefix: string, points: number) =>
  new RateLimiterRedis({ storeClient: redis, keyPrefix, points, duration: 60 })

/** Two instances on one Redis, each of another major. */
async function openTwo(points = { credential: 100_000, user: 100_000 }): Promise<Endpoint[]> {
  const prefix = newId()
  for (const { express } of EXPRESS_MAJORS) {
    const endpoint = await openEndpoint(core, {
      express,
      options: {
        limits: {
          credential: limiter(`${prefix}c`, points.credential),
          user: limiter(`${prefix}u`, points.user),
        },
      },
    })
    endpoints.push(endpoint)
  }
  return endpoints
}

describe('two instances on one Redis', () => {
  it('count together, the token first', async () => {
    const [one, other] = (await openTwo({ credential: 3, user: 100 })) as [Endpoint, Endpoint]
    const token = { token: OTHER_TOKEN }
    for (const endpoint of [one, other, one]) {
      expect((await endpoint.post(bodyAbout(newId()), token)).status).toBe(200)
    }
    const refused = await other.post(bodyAbout(newId()), token)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(50)
    // Another token has a budget of its own.
    expect((await other.post(bodyAbout(newId()))).status).toBe(200)
  })

  it('count each user', async () => {
    const [one, other] = (await openTwo({ credential: 100, user: 2 })) as [Endpoint, Endpoint]
    const id = newId()
    expect((await one.post(bodyAbout(id))).status).toBe(200)
    expect((await other.post(bodyAbout(id))).status).toBe(200)
    expect((await one.post(bodyAbout(id))).status).toBe(429)
    expect((await one.post(bodyAbout(newId()))).status).toBe(200)
    // The same id at another issuer is another user.
    expect((await one.post(bodyAbout(id), { token: OTHER_TOKEN })).status).toBe(200)
  })

  it('leave neither ids nor tokens in the names of Redis', async () => {
    const [one] = (await openTwo()) as [Endpoint]
    const id = newId()
    expect((await one.post(bodyAbout(id))).status).toBe(200)
    const keys = await redis.keys('*')
    expect(keys.length).toBeGreaterThan(1)
    expect(keys.join(' ').replaceAll(/user-[0-9a-f-]{36}[cu]:/g, '')).not.toMatch(/user-|example/)
  })
})
