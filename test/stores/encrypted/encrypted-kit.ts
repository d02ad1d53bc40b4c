import { randomBytes, randomUUID } from 'node:crypto'
import type {
  EncryptedStoreOptions,
  IdempotencyStore,
  Reservation,
  ReservationRequest,
  Store,
} from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import { afterAll } from 'vitest'
import { LIBRARY } from '../../support/redis/redis-clients.js'
import { begin, requestFor, sharedRedis } from '../redis/kit.js'

export { begin, requestFor }

/** A store on Redis to encrypt, for the tests of one file. */
export async function openRedisStore(): Promise<Store> {
  const server = await sharedRedis()
  const store = redisStore(LIBRARY.connect({ port: server.port }), { timeoutMs: 5000 })
  afterAll(() => store.close())
  return store
}

export const KEYS = {
  '2026-01': randomBytes(32),
  '2026-02': randomBytes(32),
} as const

export const OPTIONS: EncryptedStoreOptions = { keys: KEYS, current: '2026-01' }

/** Runs a request to its end; returns it. */
export async function finish(
  store: IdempotencyStore,
  result: Uint8Array,
  request = requestFor(),
): Promise<ReservationRequest> {
  const run = await begin(store, request)
  if (!(await store.settle(run, { type: 'finished', result }))) throw new Error('not settled')
  return request
}

/** What a retry finds: one that may rerun what was abandoned. */
export const retry = (store: IdempotencyStore, request: ReservationRequest): Promise<Reservation> =>
  store.reserve({ ...request, owner: randomUUID(), rerunAbandoned: true })

/** The text of what a retry finds, or why there is none. */
export async function found(store: IdempotencyStore, request: ReservationRequest): Promise<string> {
  const reservation = await retry(store, request)
  return reservation.outcome === 'finished'
    ? Buffer.from(reservation.result).toString()
    : reservation.outcome
}
