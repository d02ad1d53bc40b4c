import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type {
  IdempotencyStore,
  ReservationRequest,
  Run,
} from '../../idempotency/leased/idempotency-store.js'
import { eventually, type StoreRules } from './store-case.js'

const RACERS = 200
const LEASE_MS = 60_000
const SHORT_LEASE_MS = 300
const RETENTION_MS = 600_000

export const requestWith = (changes: Partial<ReservationRequest> = {}): ReservationRequest => ({
  recordId: randomUUID(),
  owner: randomUUID(),
  fingerprint: randomUUID(),
  leaseMs: LEASE_MS,
  retentionMs: RETENTION_MS,
  rerunAbandoned: false,
  ...changes,
})

/** Returns the same request with another owner. */
export const retryOf = (
  request: ReservationRequest,
  changes: Partial<ReservationRequest> = {},
): ReservationRequest => ({ ...request, owner: randomUUID(), ...changes })

/** Reserves a free key. */
export async function begin(store: IdempotencyStore, request: ReservationRequest): Promise<Run> {
  const found = await store.reserve(request)
  assert.equal(found.outcome, 'reserved')
  assert.ok(Number.isSafeInteger(found.fence), 'the fence is a safe integer')
  const { rerunAbandoned: _, ...run } = request
  return { ...run, fence: found.fence }
}

export async function outcomeOf(
  store: IdempotencyStore,
  request: ReservationRequest,
): Promise<string> {
  return (await store.reserve(request)).outcome
}

/** Waits until the lease of the run that reserved the request's key has ended. */
export const untilAbandoned = (
  store: IdempotencyStore,
  request: ReservationRequest,
): Promise<void> =>
  eventually('the lease ends', async () => {
    const retry = retryOf(request, { rerunAbandoned: false })
    return (await outcomeOf(store, retry)) === 'abandoned'
  })

export const RESERVATION_RULES: StoreRules<IdempotencyStore> = {
  'a free key is reserved, and a retry is told how long the lease still lasts': async (store) => {
    const request = requestWith()
    await begin(store, request)
    const found = await store.reserve(retryOf(request))
    assert.equal(found.outcome, 'running')
    assert.ok(found.leaseLeftMs > 0 && found.leaseLeftMs <= LEASE_MS, `${found.leaseLeftMs} ms`)
  },

  'of 200 reservations at once one gets the key': async (store) => {
    const request = requestWith()
    const races = Array.from({ length: RACERS }, () => outcomeOf(store, retryOf(request)))
    const outcomes = await Promise.all(races)
    assert.equal(outcomes.filter((outcome) => outcome === 'reserved').length, 1)
    assert.equal(outcomes.filter((outcome) => outcome === 'running').length, RACERS - 1)
  },

  'of 200 that may rerun an abandoned key one gets it': async (store) => {
    const request = requestWith()
    const first = await begin(store, request)
    await store.settle(first, { type: 'abandoned' })
    const races = Array.from({ length: RACERS }, () =>
      outcomeOf(store, retryOf(request, { rerunAbandoned: true })),
    )
    const outcomes = await Promise.all(races)
    assert.equal(outcomes.filter((outcome) => outcome === 'reserved').length, 1)
    assert.equal(outcomes.filter((outcome) => outcome === 'running').length, RACERS - 1)
  },

  'an owner that asks again gets its own reservation, with the same fence': async (store) => {
    const request = requestWith()
    const { fence } = await begin(store, request)
    const again = await Promise.all(Array.from({ length: 10 }, () => store.reserve(request)))
    for (const found of again) assert.deepEqual(found, { outcome: 'reserved', fence })
  },

  'another request under the same key is a mismatch, whatever has become of it': async (store) => {
    const request = requestWith()
    const other = retryOf(request, { fingerprint: randomUUID(), rerunAbandoned: true })
    const run = await begin(store, request)
    assert.equal(await outcomeOf(store, other), 'mismatch')
    await store.settle(run, { type: 'abandoned' })
    assert.equal(await outcomeOf(store, other), 'mismatch')
    await store.settle(run, { type: 'finished', result: new Uint8Array([1]) })
    assert.equal(await outcomeOf(store, other), 'mismatch')
  },

  'another request is a mismatch also when the result was not stored': async (store) => {
    const request = requestWith()
    await store.settle(await begin(store, request), { type: 'not_stored' })
    const other = retryOf(request, { fingerprint: randomUUID(), rerunAbandoned: true })
    assert.equal(await outcomeOf(store, other), 'mismatch')
  },

  'a lease that is not renewed ends, and only who may rerun gets the key': async (store) => {
    const request = requestWith({ leaseMs: SHORT_LEASE_MS })
    const first = await begin(store, request)
    await untilAbandoned(store, request)
    const rerun = retryOf(request, { rerunAbandoned: true, leaseMs: LEASE_MS })
    const second = await begin(store, rerun)
    assert.ok(second.fence > first.fence, 'the fence grows')
    assert.equal(await outcomeOf(store, retryOf(request)), 'running')
  },

  'a lease that is renewed lasts': async (store) => {
    const request = requestWith({ leaseMs: SHORT_LEASE_MS })
    const run = await begin(store, request)
    assert.equal(await store.renew({ ...run, leaseMs: LEASE_MS }), true)
    const found = await store.reserve(retryOf(request))
    assert.equal(found.outcome, 'running')
    assert.ok(found.leaseLeftMs > SHORT_LEASE_MS, `${found.leaseLeftMs} ms`)
  },

  'keys are told apart to the letter': async (store) => {
    const { recordId } = requestWith()
    for (const variant of [recordId, recordId.toUpperCase(), `${recordId} `, recordId.slice(1)]) {
      await begin(store, requestWith({ recordId: variant }))
    }
  },
}
