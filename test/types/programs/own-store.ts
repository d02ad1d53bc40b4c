// A store that a user has written, without a helper of ours.
import {
  type IdempotencyStore,
  memoryStore,
  type RecordKeeper,
  type RecordView,
  requireIdempotencyKey,
  requireSingleUse,
  type SingleUseStore,
  type StoreHealth,
} from 'express-service-auth'

const singleUse: SingleUseStore = {
  consume: async (id, ttlMs) => id.length > 0 && ttlMs > 0,
}
requireSingleUse({ store: singleUse })

const idempotency: IdempotencyStore = {
  async reserve(request) {
    if (request.rerunAbandoned) return { outcome: 'reserved', fence: 1 }
    if (request.recordId === 'done') return { outcome: 'finished', result: new Uint8Array() }
    return { outcome: 'running', leaseLeftMs: request.leaseMs }
  },
  renew: async (run) => run.fence > 0,
  settle: async (run, ending) => ending.type === 'released' && run.owner !== '',
}
requireIdempotencyKey({ store: idempotency })

// As a class, and both at once, with members of its own.
class OwnStore implements SingleUseStore, IdempotencyStore {
  readonly rows = new Map<string, number>()
  consume: SingleUseStore['consume'] = singleUse.consume
  reserve: IdempotencyStore['reserve'] = idempotency.reserve
  renew: IdempotencyStore['renew'] = idempotency.renew
  settle: IdempotencyStore['settle'] = idempotency.settle
}
const store = new OwnStore()
requireSingleUse({ store })
requireIdempotencyKey({ store })

// @ts-expect-error asynchronous: what answers at once cannot be shared by instances
requireSingleUse({ store: { consume: () => true } })
// @ts-expect-error whether it was the first use, not how many there were
requireSingleUse({ store: { consume: async () => 1 } })
// @ts-expect-error settle is missing
requireIdempotencyKey({ store: { reserve: idempotency.reserve, renew: idempotency.renew } })

// What an operator can do with it is a port of its own.
const keeper: RecordKeeper = {
  async inspect(record, canRead) {
    if (record === '') return undefined
    const isReadable = await canRead?.(new Uint8Array(), 'fingerprint')
    return { fence: 1, state: isReadable ? 'finished' : 'unreadable', leaseLeftMs: 1 }
  },
  async resolve(_record, fence, as) {
    const result = as.type === 'finished' ? as.result : undefined
    return fence > 0 && result?.byteLength !== 0
  },
}
const view: Promise<RecordView | undefined> = keeper.inspect('record')
void view
const health: StoreHealth = memoryStore().health()
void health.lastErrorAt
// @ts-expect-error an answer is missing
void keeper.resolve('record', 1, { type: 'finished' })
