import { requireIdempotencyKey, requireSingleUse, type Store } from 'express-service-auth'
import type { Persistence } from '../../../orders/persistence.js'
import type { Calls } from '../ipc/calls.js'
import type { Gate } from './gate.js'

/** Seconds: in a room that may be under load for hours, the store must not grow without end. */
const RETENTION_SECONDS = 900

export interface HeldPersistenceOptions {
  readonly calls: Calls
  readonly gate: Gate
  readonly store: Store
  readonly leaseSeconds: number
}

/**
 * The books are the parent's: what a receiver has written outlives it. The gate comes after the order:
 * a receiver that is killed there has done the work, and nobody knows.
 */
export function heldPersistence(options: HeldPersistenceOptions): Persistence {
  const { calls, gate, store, leaseSeconds } = options
  return {
    book: {
      find: (id) => calls.ask('findOrder', [id]),
      async add(order) {
        await calls.ask('addOrder', [order])
        await gate.pass()
      },
      seed: (order) => calls.ask('addOrder', [order]),
      count: () => calls.ask('countOrders', []),
    },
    once: [
      requireSingleUse({ store }),
      requireIdempotencyKey({ store, leaseSeconds, retentionSeconds: RETENTION_SECONDS }),
    ],
    storeHealth: () => ({ store: store.health() }),
  }
}
