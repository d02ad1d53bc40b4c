import { randomUUID } from 'node:crypto'
import type { ReservationRequest, Run, Store } from 'express-service-auth'
import { type RedisStoreOptions, redisStore } from 'express-service-auth/redis'
import { type Cluster, Redis, type RedisOptions } from 'ioredis'
import { onTestFinished } from 'vitest'
import { knowRedisClient } from '../../support/secret-search/index.js'

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
export async function begin(store: Store, request: ReservationRequest): Promise<Run> {
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
