import { randomUUID } from 'node:crypto'
import type { Store } from 'express-service-auth'
import type { RedisStoreOptions } from 'express-service-auth/redis'
import { idempotencyStoreCases, singleUseStoreCases } from 'express-service-auth/testing'
import { Redis } from 'ioredis'
import { beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { type RedisServer, startRedis } from '../../../support/redis/redis.js'
import { startReplica, untilInStep } from '../../../support/redis/redis-replica.js'
import { testCases } from '../../../support/stores/store-cases.js'
import { until } from '../../../support/until.js'
import {
  answers,
  begin,
  openAs,
  openIoredisStore,
  openStore,
  ownRedis,
  proxyOf,
  requestFor,
  retryOf,
  started,
  timed,
} from '../kit.js'

const REPLICAS = { min: 1, timeoutMs: 200 }
const SLACK_MS = 400

let primary: RedisServer
let replica: RedisServer

beforeAll(async () => {
  primary = await startRedis()
  replica = await startReplica(primary)
  return async () => {
    await replica.stop()
    await primary.stop()
  }
})
beforeEach(async () => {
  await untilInStep(replica)
})

/** Until `replica.resume()`, or the test's end. */
function pauseReplica(): void {
  replica.pause()
  onTestFinished(() => replica.resume())
}

/** A store that has reserved something, so that its connections are open. */
async function warm(options: RedisStoreOptions = { replicas: REPLICAS }): Promise<Store> {
  const { store } = openStore(primary, options)
  await until('the store answers', () => answers(store))
  await begin(store, requestFor())
  return store
}

describe('a store whose replicas keep up', () => {
  let store: Store
  beforeEach(async () => {
    store = await warm({ replicas: { min: 1, timeoutMs: 5000 }, timeoutMs: 5000 })
  })

  testCases(singleUseStoreCases(() => store))
  testCases(idempotencyStoreCases(() => store))

  it('has what it reserved on the replica when it says so', async () => {
    const request = requestFor()
    const id = randomUUID()
    await Promise.all([begin(store, request), store.consume(id, 60_000)])
    expect(await replica.command('EXISTS', `esa:k:${request.recordId}`, `esa:t:${id}`)).toBe('2')
  })

  it('waits once for all reservations that are under way', async () => {
    await primary.command('CONFIG', 'RESETSTAT')
    await Promise.all(Array.from({ length: 300 }, () => store.consume(randomUUID(), 60_000)))
    const stats = await primary.command('INFO', 'commandstats')
    expect(Number(/cmdstat_wait:calls=(\d+)/.exec(stats)?.[1])).toBeLessThanOrEqual(3)
  })

  it('reserves on when the server has forgotten its scripts', async () => {
    await primary.command('SCRIPT', 'FLUSH')
    const ids = Array.from({ length: 20 }, () => randomUUID())
    const uses = await Promise.all(ids.map((id) => store.consume(id, 60_000)))
    expect(uses.every((isFirst) => isFirst)).toBe(true)
    for (const id of ids) expect(await replica.command('EXISTS', `esa:t:${id}`)).toBe('1')
  })
})

describe('a store whose replica is paused', () => {
  it('rejects reservations within both bounds, and leaves no key to block', async () => {
    const store = await warm()
    const request = requestFor()
    pauseReplica()
    const { ms, error } = await timed(store.reserve(request))
    expect(error?.message).toContain('0 of 1 replicas')
    expect(ms).toBeLessThan(250 + REPLICAS.timeoutMs + SLACK_MS)
    // Nothing but a mark that nobody minds, and only for the lease.
    await until('it was taken back', async () =>
      (await primary.command('GET', `esa:k:${request.recordId}`)).startsWith('1|f|'),
    )
    replica.resume()
    await begin(store, retryOf(request))
  })

  it('bounds every wait, however many queue', async () => {
    const store = await warm({ replicas: { min: 1, timeoutMs: 400 }, timeoutMs: 100 })
    pauseReplica()
    const waits: Promise<{ ms: number; error?: Error }>[] = []
    for (let wave = 0; wave < 10; wave++) {
      for (let n = 0; n < 20; n++) waits.push(timed(store.reserve(requestFor())))
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    for (const { ms, error } of await Promise.all(waits)) {
      expect(error).toBeInstanceOf(Error)
      expect(ms).toBeLessThan(500 + SLACK_MS)
    }
    replica.resume()
    await until('the store answers', () => answers(store))
  })

  it('rejects tokens, which stay used', async () => {
    const store = await warm()
    const id = randomUUID()
    pauseReplica()
    await expect(store.consume(id, 60_000)).rejects.toThrow('replicas')
    replica.resume()
    await until('the store answers', () => answers(store))
    expect(await store.consume(id, 60_000)).toBe(false)
  })

  it('answers what is no reservation, and keeps results', async () => {
    const store = await warm()
    const request = requestFor()
    const id = randomUUID()
    const run = await begin(store, request)
    await store.consume(id, 60_000)
    pauseReplica()
    const asked = await timed(
      Promise.all([
        store.renew(run),
        store.settle(run, { type: 'finished', result: Buffer.from('x') }),
        store.consume(id, 60_000),
        store.reserve(retryOf(request, { fingerprint: 'another' })),
      ]),
    )
    expect(asked.value).toMatchObject([true, true, false, { outcome: 'mismatch' }])
    const replayed = await timed(store.reserve(retryOf(request)))
    expect(replayed.value?.outcome).toBe('finished')
  })

  it('lets nobody else’s commands wait', async () => {
    const { store, redis } = openIoredisStore(primary, { replicas: { min: 1, timeoutMs: 2000 } })
    await until('the store answers', () => answers(store))
    const run = await begin(store, requestFor())
    pauseReplica()
    const reserving = timed(store.reserve(requestFor()))
    const others = await timed(Promise.all([redis.ping(), store.renew(run), store.check()]))
    expect(others.error).toBeUndefined()
    expect(others.ms).toBeLessThan(1000)
    replica.resume()
    expect((await reserving).value?.outcome).toBe('reserved')
  })
})

it('undoes a reservation on its own connection, so that it cannot overtake it', async () => {
  const server = await ownRedis({ 'slowlog-log-slower-than': '0' })
  const { store } = openStore(server, { timeoutMs: 2000, replicas: { min: 1, timeoutMs: 50 } })
  const request = requestFor()
  await expect(store.reserve(request)).rejects.toThrow('0 of 1 replicas')
  const name = `esa:k:${request.recordId}`
  await until('it is undone', async () => (await server.command('GET', name)).startsWith('1|f|'))
  const client = new Redis(server.url)
  onTestFinished(() => client.disconnect())
  const commands = (await client.slowlog('GET', 100)) as [
    number,
    number,
    number,
    string[],
    string,
  ][]
  const ofRecord = commands.filter(
    ([, , , words]) => /^evalsha$/i.test(words[0] ?? '') && words.includes(name),
  )
  expect(new Set(ofRecord.map(([, , , words]) => words[1])).size).toBe(2)
  expect(new Set(ofRecord.map(([, , , , address]) => address)).size).toBe(1)
})

describe('a reply that is lost on the wire of the reservations', () => {
  it('is recognised as one’s own, and its replicas are waited for again', async () => {
    const proxy = await proxyOf(primary)
    const { store } = openStore(proxy, { timeoutMs: 2000, replicas: { min: 1, timeoutMs: 300 } })
    await begin(store, requestFor())
    const [kept, refused] = [requestFor(), requestFor()]
    proxy.loseReply('reserved')
    const run = await begin(store, kept)
    expect(await store.reserve(kept)).toEqual({ outcome: 'reserved', fence: run.fence })
    pauseReplica()
    proxy.loseReply('reserved')
    await expect(store.reserve(refused)).rejects.toThrow('0 of 1 replicas')
    replica.resume()
    await until('a retry runs the handler', async () => {
      const { outcome } = await store.reserve(retryOf(refused))
      return outcome === 'reserved'
    })
  })
})

describe('a primary that hangs', () => {
  it('is waited for within both bounds, and what arrives late is taken back', async () => {
    const own = await ownRedis()
    await started(startReplica(own))
    const { store } = openStore(own, { replicas: REPLICAS })
    await until('the store answers', () => answers(store))
    own.pause()
    const request = requestFor({ leaseMs: 1000 })
    const { ms, error } = await timed(store.reserve(request))
    expect(error).toBeInstanceOf(Error)
    expect(ms).toBeLessThan(250 + REPLICAS.timeoutMs + SLACK_MS)
    own.resume()
    await until('a retry runs the handler', () =>
      store.reserve(retryOf(request)).then(
        ({ outcome }) => outcome === 'reserved',
        () => false,
      ),
    )
  })
})

it('a user of Redis who may not wait gets no reservation, and none stays', async () => {
  const { store } = await openAs(primary, '-wait', { replicas: REPLICAS })
  const request = requestFor()
  await expect(store.reserve(request)).rejects.toThrow('NOPERM')
  await until('it was taken back', async () =>
    (await primary.command('GET', `esa:k:${request.recordId}`)).startsWith('1|f|'),
  )
})
