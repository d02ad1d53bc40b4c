import { randomUUID } from 'node:crypto'
import type { IdempotencyStore, ReservationRequest, Run, Store } from 'express-service-auth'
import { type RedisStoreOptions, redisStore } from 'express-service-auth/redis'
import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import { afterAll, onTestFinished } from 'vitest'
import { startTcpProxy, type TcpProxy } from '../../support/network/tcp-proxy.js'
import { type RedisConfig, type RedisServer, startRedis } from '../../support/redis/redis.js'
import { knowRedisClient } from '../../support/secret-search/index.js'

/** The releases of ioredis that the package works with, both under the types of the later one. */
export const MAJORS = [
  { major: 'ioredis 6', RedisOfRelease: Redis, ClusterOfRelease: Cluster },
  {
    major: 'ioredis 5',
    RedisOfRelease: Redis5 as unknown as typeof Redis,
    ClusterOfRelease: Cluster5 as unknown as typeof Cluster,
  },
]

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
  readonly redis: Redis
}

/** A user's client and a store on it; both end with the test. */
export function openStore(
  address: { host: string; port: number },
  options: RedisStoreOptions = {},
  clientOptions: RedisOptions = {},
): Opened {
  const { host, port } = address
  const redis = new Redis({ host, port, lazyConnect: true, ...clientOptions } as object)
  return { redis, store: storeOn(redis, options) }
}

export function storeOn(redis: Redis | Cluster, options: RedisStoreOptions = {}): Store {
  knowRedisClient(redis)
  redis.on('error', () => {})
  const store = redisStore(redis, options)
  onTestFinished(() => {
    store.close()
    redis.disconnect()
  })
  return store
}

export const requestFor = (changes: Partial<ReservationRequest> = {}): ReservationRequest => ({
  key: randomUUID(),
  owner: randomUUID(),
  fingerprint: 'fingerprint',
  leaseMs: 30_000,
  retentionMs: 86_400_000,
  rerunAbandoned: false,
  ...changes,
})

export const retryOf = (
  request: ReservationRequest,
  changes: Partial<ReservationRequest> = {},
): ReservationRequest => ({ ...request, owner: randomUUID(), ...changes })

/** Reserves a key that is free. */
export async function begin(store: IdempotencyStore, request: ReservationRequest): Promise<Run> {
  const found = await store.reserve(request)
  if (found.outcome !== 'reserved') throw new Error(`not reserved: ${found.outcome}`)
  return { ...request, fence: found.fence }
}

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
  store.consume(randomUUID(), 1000).then(
    () => true,
    () => false,
  )
