import { randomUUID } from 'node:crypto'
import { type RedisClientLike, redisDenylist, redisStore } from 'express-service-auth/redis'
import {
  type DenylistUnderTest,
  idempotencyStoreCases,
  liveDenylistCases,
  recordKeeperCases,
  singleUseStoreCases,
} from 'express-service-auth/testing'
import { Redis } from 'ioredis'
import { createClientPool, createSentinel } from 'redis'
// @ts-expect-error It has no types.
import { createClient as createClient3 } from 'redis3'
import { createClient as createClient4, createCluster as createCluster4 } from 'redis4'
import { createClientPool as createClientPool5, createSentinel as createSentinel5 } from 'redis5'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { endClient } from '../../../support/redis/redis-clients.js'
import { testCases } from '../../../support/stores/store-cases.js'
import { until } from '../../../support/until.js'
import { PATIENTLY } from '../denylist/denylist-kit.js'
import { LIBRARIES, sharedRedis, storeOn } from '../kit.js'

const MAJORS_OF_EACH_KIND = ['ioredis 6', 'node-redis 6']

const server = await sharedRedis()
describe.each(LIBRARIES)('through $library', ({ library, connect }) => {
  const users = connect({ port: server.port })
  const store = redisStore(users, { prefix: `${library}:`, timeoutMs: 5000 })
  afterAll(() => {
    store.close()
    endClient(users)
  })

  describe.concurrent('a store and a denylist', () => {
    testCases(singleUseStoreCases(() => store))
    testCases(idempotencyStoreCases(() => store))
    // One library of each kind: the scripts are the same.
    if (!MAJORS_OF_EACH_KIND.includes(library)) return
    testCases(recordKeeperCases(() => store))
    const onRedis = (): DenylistUnderTest => {
      const denylist = redisDenylist(users, { prefix: `${library}:` })
      return {
        denylist,
        deny: (entry) => denylist.deny(entry, PATIENTLY),
        allow: (target) => denylist.allow(target, PATIENTLY),
      }
    }
    testCases(liveDenylistCases(onRedis))
  })

  it('a store is fit for its purpose, has the prefix and database of the client, and its name', async () => {
    const name = randomUUID()
    // node-redis 5 has no prefix of keys.
    const keyPrefix = library === 'node-redis 5' ? '' : 'app:'
    const options = { port: server.port, db: 5, keyPrefix, name }
    const own = storeOn(connect(options), { timeoutMs: 5000 })
    await expect(own.check()).resolves.toEqual([])
    const id = randomUUID()
    expect(await own.consume(id, 60_000)).toBe(true)
    const fifth = new Redis({ port: server.port, db: 5 })
    expect(await fifth.exists(`${keyPrefix}esa:t:${id}`)).toBe(1)
    fifth.disconnect()
    await until('it is named', async () =>
      (await server.command('CLIENT', 'LIST')).includes(`name=${name}`),
    )
  })
})

const SENTINEL = { name: 'orders', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] }

it.each<[string, () => unknown]>([
  [
    'a client of node-redis 3',
    () => {
      const client = createClient3({ port: server.port })
      onTestFinished(() => client.end(true))
      return client
    },
  ],
  ['a client of node-redis 4', () => createClient4()],
  ['a cluster client of node-redis 4', () => createCluster4({ rootNodes: [] })],
  ['createSentinel', () => createSentinel(SENTINEL)],
  ['createClientPool', () => createClientPool()],
  ['createSentinel 5', () => createSentinel5(SENTINEL)],
  ['createClientPool 5', () => createClientPool5()],
  ['an address', () => 'redis://127.0.0.1'],
  ['nothing', () => undefined],
])('%s is a TypeError that names what is accepted', (_, make) => {
  const client = make() as RedisClientLike
  for (const create of [redisStore, redisDenylist]) {
    expect(() => create(client)).toThrow(TypeError)
    expect(() => create(client)).toThrow(
      /^redis(Store|Denylist): redis must be a Redis or Cluster .* createCluster of redis \(node-redis\) 5 or 6 returns$/,
    )
  }
})
