import { randomUUID } from 'node:crypto'
import type { ReservationRequest, Store } from 'express-service-auth'
import {
  type RedisClientLike,
  type RedisStoreOptions,
  redisStore,
} from 'express-service-auth/redis'
import { Redis, type RedisOptions } from 'ioredis'
import { afterAll, expect, onTestFinished } from 'vitest'
import { begin, retryOf } from '../../../src/testing/stores/idempotency-store-cases.js'
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js'
import { type RedisConfig, type RedisServer, startRedis } from '../../support/redis/redis.js'
import { endClient, LIBRARY, type Login } from '../../support/redis/redis-clients.js'
import { succeeds } from '../../support/until.js'

export { CHOSEN_LIBRARIES, LIBRARIES, MAJORS } from '../../support/redis/redis-clients.js'
export { begin, retryOf }

/**
 * The server that the tests of a file share, stopped after them. To be called once, outside of a test:
 * `const server = await sharedRedis()`.
 */
export async function sharedRedis(config: RedisConfig = {}): Promise<RedisServer> {
  const server = await startRedis({ config })
  afterAll(() => server.stop())
  return server
}

/** Starts a server, or several, for one test: they stop at its end. */
export async function started<T extends { stop(): Promise<void> }>(
  starting: Promise<T>,
): Promise<T> {
  const server = await starting
  onTestFinished(() => server.stop())
  return server
}

export const ownRedis = (config: RedisConfig = {}): Promise<RedisServer> =>
  started(startRedis({ config }))

/** A proxy before the server, until the end of the test. */
export async function proxyOf(server: { host: string; port: number }): Promise<TcpProxy> {
  const proxy = await startTcpProxy(server)
  onTestFinished(() => proxy.close())
  return proxy
}

export interface Opened {
  readonly store: Store
  readonly redis: RedisClientLike
}

/** A user's client of the library under test and a store on it; both end with the test. */
export function openStore(
  address: { host: string; port: number },
  options: RedisStoreOptions = {},
  login: Login = {},
): Opened {
  const { host, port } = address
  const redis = LIBRARY.connect({ host, port, ...login })
  return { redis, store: storeOn(redis, options) }
}

/** As `openStore`, with ioredis. */
export function openIoredisStore(
  address: { host: string; port: number },
  options: RedisStoreOptions = {},
  clientOptions: RedisOptions = {},
): Opened & { readonly redis: Redis } {
  const { host, port } = address
  const redis = new Redis({ host, port, lazyConnect: true, ...clientOptions } as object)
  return { redis, store: storeOn(redis, options) }
}

/** A store whose user may do everything but what the rule takes away. */
export async function openAs(
  redis: RedisServer,
  rule: string,
  options: RedisStoreOptions = {},
): Promise<Opened> {
  const rules = ['on', '>password-of-limited', '~*', '+@all', ...rule.split(' ')]
  await redis.command('ACL', 'SETUSER', 'limited', 'reset', ...rules)
  return openStore(redis, options, { username: 'limited', password: 'password-of-limited' })
}

export function storeOn(redis: RedisClientLike, options: RedisStoreOptions = {}): Store {
  const store = redisStore(redis, options)
  onTestFinished(() => {
    store.close()
    endClient(redis)
  })
  return store
}

export const requestFor = (changes: Partial<ReservationRequest> = {}): ReservationRequest => ({
  recordId: randomUUID(),
  owner: randomUUID(),
  fingerprint: 'fingerprint',
  leaseMs: 30_000,
  retentionMs: 86_400_000,
  rerunAbandoned: false,
  ...changes,
})

/** How long a promise took to be settled, and how. */
export async function timed<T>(
  work: Promise<T>,
): Promise<{ ms: number; value?: T; error?: Error }> {
  const startedAt = performance.now()
  const outcome = await work.then(
    (value) => ({ value }),
    (error: Error) => ({ error }),
  )
  return { ms: performance.now() - startedAt, ...outcome }
}

/** Whether the store answers. */
export const answers = (store: Store): Promise<boolean> =>
  succeeds(store.consume(randomUUID(), 1000))

/** That the store is fit, and does what it must. */
export async function expectWorks(store: Store): Promise<void> {
  await expect(store.check()).resolves.toEqual([])
  const id = randomUUID()
  expect(await store.consume(id, 60_000)).toBe(true)
  expect(await store.consume(id, 60_000)).toBe(false)
  const request = requestFor()
  const run = await begin(store, request)
  const found = await store.reserve(retryOf(request))
  expect(found).toEqual({ outcome: 'running', leaseLeftMs: expect.any(Number) })
  const result = Buffer.from([0, 255])
  expect(await store.settle(run, { type: 'finished', result })).toBe(true)
  expect(await store.reserve(retryOf(request))).toEqual({ outcome: 'finished', result })
}
