// A store that a user has written, without a helper of ours.
import {
  type IdempotencyStore,
  requireIdempotencyKey,
  requireSingleUse,
  type SingleUseStore,
} from 'express-service-auth'

const singleUse: SingleUseStore = {
  consume: async (id, ttlMs) => id.length > 0 && ttlMs > 0,
}
requireSingleUse({ store: singleUse })

const idempotency: IdempotencyStore = {
  async reserve(request) {
    if (request.rerunAbandoned) return { outcome: 'reserved', fence: 1 }
    if (request.key === 'done') return { outcome: 'finished', result: new Uint8Array() }
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
