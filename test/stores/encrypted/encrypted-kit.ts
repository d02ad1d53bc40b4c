import { randomBytes, randomUUID } from 'node:crypto'
import {
  type EncryptedStoreOptions,
  type IdempotencyStore,
  memoryStore,
  type Reservation,
  type ReservationRequest,
  type Store,
} from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import { afterAll } from 'vitest'
import { LIBRARY } from '../../support/redis/redis-clients.js'
import { begin, requestFor, sharedRedis } from '../redis/kit.js'

export { begin, requestFor }

/** A store of each kind to encrypt, for the tests of one file. */
export async function openInnerStores(): Promise<Record<'onMemory' | 'onRedis', Store>> {
  const server = await sharedRedis()
  const onRedis = redisStore(LIBRARY.connect({ port: server.port }), { timeoutMs: 5000 })
  const stores = { onMemory: memoryStore(), onRedis }
  afterAll(() => {
    stores.onMemory.close()
    stores.onRedis.close()
  })
  return stores
}

/** An inner store whose kept result a test can read and write. */
export interface OpenedStore {
  readonly store: IdempotencyStore
  read(record: string): Promise<Buffer>
  write(record: string, result: Buffer): Promise<void>
  close(): void
}

/** A store in memory. */
export function openInner(): OpenedStore {
  const inner = memoryStore()
  const kept = new Map<string, Uint8Array>()
  const store: IdempotencyStore = {
    ...inner,
    async reserve(request) {
      const reservation = await inner.reserve(request)
      const result = kept.get(request.recordId)
      if (reservation.outcome !== 'finished' || result === undefined) return reservation
      return { outcome: 'finished', result }
    },
  }
  return {
    store,
    async read(key) {
      const reservation = await store.reserve(requestFor({ recordId: key }))
      if (reservation.outcome !== 'finished') throw new Error(reservation.outcome)
      return Buffer.from(reservation.result)
    },
    async write(record, result) {
      kept.set(record, result)
    },
    close: () => inner.close(),
  }
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
