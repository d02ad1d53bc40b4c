import { describe, expect, it, onTestFinished } from 'vitest'
import { openStore } from '../../example-app/orders/open-store.js'
import { startRedis } from '../support/redis/redis.js'

it('is the memory of the process without an address', async () => {
  const { store, name, close } = await openStore(undefined)
  expect(name).toBe('memory')
  expect([await store.consume('a', 1000), await store.consume('a', 1000)]).toEqual([true, false])
  close()
})

it.each([
  'localhost:6379',
  'http://localhost:6379',
  'redis://:a-password@localhost:port',
  'redis://',
  'redis://localhost/zero',
  'not an address',
])('refuses the address %s without quoting it', async (url) => {
  await expect(openStore(url)).rejects.toMatchObject({
    name: 'StartError',
    message: 'REDIS_URL must be an address such as redis://localhost:6379/0',
  })
})

describe('with Redis', () => {
  it('is shared by all who open it', async () => {
    const redis = await startRedis()
    onTestFinished(() => redis.stop())
    const stores = [await openStore(redis.url), await openStore(`${redis.url}/0`)]
    const consumed = [
      await stores[0]?.store.consume('a', 1000),
      await stores[1]?.store.consume('a', 1000),
    ]
    expect(consumed).toEqual([true, false])
    for (const { close } of stores) close()
  })

  it('is refused when the server may forget reservations', async () => {
    const redis = await startRedis({ config: { 'maxmemory-policy': 'allkeys-lru' } })
    onTestFinished(() => redis.stop())
    await expect(openStore(redis.url)).rejects.toMatchObject({
      name: 'StartError',
      message: expect.stringContaining(`Redis at 127.0.0.1:${redis.port} cannot serve: `),
    })
  })
})
