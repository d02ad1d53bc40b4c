import { randomUUID } from 'node:crypto'
import type { Store } from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import {
  idempotencyStoreCases,
  recordKeeperCases,
  singleUseStoreCases,
} from 'express-service-auth/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RedisServer } from '../../../support/redis/redis.js'
import { endClient, LIBRARY } from '../../../support/redis/redis-clients.js'
import { type RedisCluster, startCluster } from '../../../support/redis/redis-cluster.js'
import { isPrimary } from '../../../support/redis/redis-replica.js'
import { testCases } from '../../../support/stores/store-cases.js'
import { until } from '../../../support/until.js'
import { answers, CHOSEN_LIBRARIES, requestFor, retryOf, storeOn } from '../kit.js'

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startCluster()
})
afterAll(() => cluster.stop())

describe.each(CHOSEN_LIBRARIES)(
  'a store on a cluster, through $library',
  ({ library, connectCluster }) => {
    const connect = (options = {}) => connectCluster(cluster.startupNodes, options)

    describe.each([
      ['without replicas', undefined],
      ['with a replica', { min: 1, timeoutMs: 5000 }],
    ])('%s', (_, replicas) => {
      let store: Store
      beforeAll(async () => {
        const redis = connect()
        store = redisStore(redis, { timeoutMs: 5000, replicas })
        await until('the store answers', () => answers(store))
        return () => {
          store.close()
          endClient(redis)
        }
      })

      testCases(singleUseStoreCases(() => store))
      testCases(idempotencyStoreCases(() => store))
      testCases(recordKeeperCases(() => store))

      it('is fit for its purpose', async () => {
        await expect(store.check()).resolves.toEqual([])
      })
    })

    it('honours the prefix of the client, for reservations with replicas too', async () => {
      // node-redis 5 has no prefix of keys.
      const keyPrefix = library === 'node-redis 5' ? '' : 'app:'
      const redis = connect({ keyPrefix })
      const store = storeOn(redis, { timeoutMs: 5000, replicas: { min: 1, timeoutMs: 5000 } })
      const plain = storeOn(redis, { timeoutMs: 5000 })
      const id = randomUUID()
      expect(await store.consume(id, 60_000)).toBe(true)
      expect(await plain.consume(id, 60_000)).toBe(false)
      const found = await Promise.all(
        cluster.masters.map((node) =>
          node.command('EXISTS', `${keyPrefix}esa:t:${id}`).catch(() => '0'),
        ),
      )
      expect(found.filter((count) => count === '1')).toHaveLength(1)
    })

    it('finds its reservations after their slot has moved to another master', async () => {
      const { masters } = cluster
      const keysIn = (slot: string) =>
        Promise.all(masters.map((node) => node.command('CLUSTER', 'COUNTKEYSINSLOT', slot)))
      let [tag, slot] = ['', '']
      // Other tests have left keys in some slots.
      do {
        tag = randomUUID()
        slot = String(await masters[0]?.command('CLUSTER', 'KEYSLOT', tag))
      } while ((await keysIn(slot)).some((count) => count !== '0'))
      const replicas = { min: 1, timeoutMs: 5000 }
      const store = storeOn(connect(), { timeoutMs: 5000, prefix: `{${tag}}:`, replicas })
      const [before, after] = [randomUUID(), randomUUID()]
      expect(await store.consume(before, 60_000)).toBe(true)

      const counts = await keysIn(slot)
      const from = masters[counts.indexOf('1')] as RedisServer
      const to = masters[counts.indexOf('0')] as RedisServer
      const [fromId, toId] = await Promise.all(
        [from, to].map((node) => node.command('CLUSTER', 'MYID')),
      )
      await to.command('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(fromId))
      await from.command('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(toId))
      const key = `{${tag}}:t:${before}`
      expect(await from.command('MIGRATE', to.host, String(to.port), key, '0', '5000')).toBe('OK')
      for (const node of [to, from]) {
        await node.command('CLUSTER', 'SETSLOT', slot, 'NODE', String(toId))
      }
      expect(await store.consume(before, 60_000)).toBe(false)
      expect(await store.consume(after, 60_000)).toBe(true)
    })
  },
)

describe('a cluster with faults', () => {
  const connect = () => LIBRARY.connectCluster(cluster.startupNodes)

  it('has every master looked at', async () => {
    const store = storeOn(connect(), { timeoutMs: 5000 })
    for (const master of cluster.masters) {
      await expect(store.check()).resolves.toEqual([])
      await master.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
      await expect(store.check()).rejects.toThrow(`${master.port} may evict keys`)
      await master.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    }
  })

  it('loses no reservation with a master killed under load, and comes back', async () => {
    const instances = [0, 1].map(() => storeOn(connect(), { replicas: { min: 1, timeoutMs: 200 } }))
    for (const store of instances) await until('the store answers', () => answers(store))
    const runs = new Map<string, number>()
    const requests = Array.from({ length: 60 }, () => requestFor({ leaseMs: 60_000 }))
    let isOver = false
    let refusals = 0

    /** What two receivers do: each key is asked for again and again, and runs when it is reserved. */
    async function ask(store: Store, index: number): Promise<void> {
      for (let turn = index; !isOver; turn++) {
        const request = retryOf(requests[turn % requests.length] ?? requestFor())
        try {
          const found = await store.reserve(request)
          if (found.outcome === 'reserved') {
            runs.set(request.recordId, (runs.get(request.recordId) ?? 0) + 1)
          }
        } catch {
          refusals++
        }
        if (turn % 10 === 0) requests.push(requestFor({ leaseMs: 60_000 }))
        await new Promise((resolve) => setTimeout(resolve, 2))
      }
    }

    const load = Promise.all(
      instances.flatMap((store) => [0, 20, 40].map((index) => ask(store, index))),
    )
    await until('there is some load', async () => runs.size > 50)
    await cluster.masters[0]?.kill()
    await until('it was noticed', async () => refusals > 0)
    const [promoted] = cluster.replicas
    await until(
      'the replica is promoted',
      async () => promoted !== undefined && isPrimary(promoted),
    )
    isOver = true
    await load
    for (const count of runs.values()) expect(count).toBe(1)
    await cluster.masters[0]?.restart()
    for (const store of instances) {
      await until('every key can be reserved again', async () => {
        const outcomes = await Promise.allSettled(
          requests.map((request) => store.reserve(retryOf(request))),
        )
        return outcomes.every(({ status }) => status === 'fulfilled')
      })
    }
  }, 60_000)
})
