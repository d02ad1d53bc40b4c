import { randomUUID } from 'node:crypto'
import type { Cluster, RedisOptions } from 'ioredis'
import { describe, expect, it, vi } from 'vitest'
import { until } from '../../../support/until.js'
import {
  answers,
  expectWorks,
  MAJORS,
  openIoredisStore,
  proxyOf,
  sharedRedis,
  storeOn,
  timed,
} from '../kit.js'

const server = await sharedRedis()

describe('whatever the user’s client is told', () => {
  const OPTIONS: [string, RedisOptions][] = [
    ['no offline queue', { enableOfflineQueue: false }],
    ['retries forever', { maxRetriesPerRequest: null }],
    ['no retries', { maxRetriesPerRequest: 0 }],
    ['a short time for commands', { commandTimeout: 1 }],
    ['auto-pipelining', { enableAutoPipelining: true }],
    ['a prefix of keys', { keyPrefix: 'app:' }],
    ['numbers as strings', { stringNumbers: true }],
    ['no reconnecting', { retryStrategy: () => null }],
    ['late reconnecting', { retryStrategy: () => 60_000 }],
    ['no resending', { autoResendUnfulfilledCommands: false }],
    ['no ready check', { enableReadyCheck: false }],
    ['another database', { db: 3 }],
    ['a name', { connectionName: 'orders' }],
    ['resending on errors', { reconnectOnError: () => 2 }],
    ['read-only', { readOnly: true }],
    ['the third protocol', { protocol: 3, replyMapping: 'resp3' } as RedisOptions],
    ['a socket timeout', { socketTimeout: 1 }],
  ]

  it.each(OPTIONS)('%s, the store does all it should', async (_, options) => {
    const proxy = await proxyOf(server)
    const { store } = openIoredisStore(proxy, { timeoutMs: 1000 }, options)
    await expectWorks(store)
    await proxy.fail('refused')
    const { ms, error } = await timed(store.consume(randomUUID(), 60_000))
    expect(error).toBeInstanceOf(Error)
    expect(ms).toBeLessThan(2500)
    await proxy.restore()
    await until('the store answers', () => answers(store))
  })
})

it.each(MAJORS)('a cluster client of $major hands on its login and its TLS', async (major) => {
  const redisOptions = { username: 'app', password: 'of-the-app', tls: { servername: 'redis' } }
  const nodes = [{ host: '127.0.0.1', port: 1 }]
  const users = new major.ClusterOfRelease(nodes, { lazyConnect: true, redisOptions })
  const duplicate = vi.spyOn(users, 'duplicate')
  await expect(storeOn(users).consume('a-token', 1000)).rejects.toThrow()
  const own = duplicate.mock.results[0]?.value as Cluster
  expect(own.options.redisOptions).toMatchObject(redisOptions)
})

describe('whatever the user’s client is doing', () => {
  it('blocking does not delay it', async () => {
    const { store, redis } = openIoredisStore(server)
    const waiting = [redis.blpop('nothing', 0), redis.wait(5, 0)]
    for (const each of waiting) each.catch(() => {})
    const { ms, value } = await timed(store.consume(randomUUID(), 1000))
    expect(value).toBe(true)
    expect(ms).toBeLessThan(250)
    redis.disconnect()
  })

  it('ending its own connection does not end the store’s', async () => {
    const { store, redis } = openIoredisStore(server)
    await redis.ping()
    await store.consume(randomUUID(), 1000)
    await redis.quit()
    expect(await store.consume(randomUUID(), 1000)).toBe(true)
  })
})
