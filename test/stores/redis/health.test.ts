import { randomUUID } from 'node:crypto'
import type { Store } from 'express-service-auth'
import type { RedisStoreOptions } from 'express-service-auth/redis'
import type { RedisOptions } from 'ioredis'
import { expect, it } from 'vitest'
import type { RedisConfig } from '../../support/redis/redis.js'
import { until } from '../../support/until.js'
import { answers, openStore, ownRedis, requestFor, sharedRedis } from './kit.js'

const server = await sharedRedis()

const fail = (store: Store): Promise<unknown> =>
  expect(store.consume(randomUUID(), 1000)).rejects.toThrow()

const isRecent = (seconds = 0): boolean => Math.abs(Date.now() / 1000 - seconds) < 60

it('a store on Redis is unused, then up, and asks nobody how it is', async () => {
  const { store } = openStore(server)
  expect(store.health()).toEqual({ state: 'unused' })
  await store.check()
  expect(store.health()).toEqual({ state: 'up' })
  server.pause()
  expect(store.health()).toEqual({ state: 'up' })
  server.resume()
})

it.each<[string, (store: Store) => Promise<unknown>]>([
  ['consume', (store) => store.consume(randomUUID(), 1000)],
  ['reserve', (store) => store.reserve(requestFor())],
  ['settle', (store) => store.settle({ ...requestFor(), fence: 1 }, { type: 'abandoned' })],
  ['check', (store) => store.check()],
])('each call tells how it is: %s', async (_, ask) => {
  const { store } = openStore(server, { timeoutMs: 1000 })
  await ask(store)
  expect(store.health()).toEqual({ state: 'up' })
  server.pause()
  await expect(ask(store)).rejects.toThrow()
  expect(store.health()).toMatchObject({ state: 'down', lastError: 'timeout' })
  server.resume()
  await until('the store answers', () => answers(store))
  expect(store.health()).toMatchObject({ state: 'up', lastErrorAt: expect.any(Number) })
})

it('a server that is gone is a fault of the network', async () => {
  const redis = await ownRedis()
  const { store } = openStore(redis)
  await store.check()
  await redis.kill()
  await fail(store)
  await until('the connection is known to be gone', async () => {
    await fail(store)
    return store.health().lastError === 'network'
  })
  const { state, lastErrorAt } = store.health()
  expect(state).toBe('down')
  expect(isRecent(lastErrorAt)).toBe(true)
  await redis.restart()
  await until('the store answers', () => answers(store))
  expect(store.health()).toMatchObject({ state: 'up', lastErrorAt: expect.any(Number) })
})

it.each<[string, RedisConfig, RedisStoreOptions, RedisOptions]>([
  ['is refused', { 'min-replicas-to-write': '1' }, {}, {}],
  ['has a wrong password', { requirepass: 'right' }, {}, { password: 'wrong' }],
  ['too few replicas acknowledge', {}, { replicas: { min: 1, timeoutMs: 50 } }, {}],
])('a call that %s is a fault of the server', async (_, config, options, client) => {
  const { store } = openStore(await ownRedis(config), { timeoutMs: 5000, ...options }, client)
  await fail(store)
  expect(store.health()).toMatchObject({ state: 'down', lastError: 'server' })
  expect(JSON.stringify(store.health())).not.toContain('wrong')
})

it('a store that is closed says so, whatever it was before', async () => {
  const { store } = openStore(server)
  await store.check()
  store.close()
  expect(store.health()).toMatchObject({ state: 'down', lastError: 'closed' })
  await fail(store)
  expect(store.health()).toMatchObject({ state: 'down', lastError: 'closed' })
})
