import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import type {
  Ending,
  IdempotencyStore,
  ReservationRequest,
  Run,
} from '../../idempotency/leased/idempotency-store.js'
import {
  casesOf,
  eventually,
  type StoreCase,
  type StoreOpener,
  type StoreRules,
} from './store-case.js'

/**
 * The rules of an `IdempotencyStore`, as cases for any test runner.
 *
 * @throws TypeError if it is given no function.
 *
 * @example
 * ```ts
 * import { memoryStore } from 'express-service-auth'
 * import { idempotencyStoreCases } from 'express-service-auth/testing'
 *
 * for (const { name, run } of idempotencyStoreCases(() => memoryStore())) {
 *   await run()
 *   console.log(`ok: ${name}`)
 * }
 * ```
 */
export const idempotencyStoreCases = (open: StoreOpener<IdempotencyStore>): readonly StoreCase[] =>
  casesOf({ ...RESERVATION_RULES, ...ENDING_RULES }, open)

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

async function expectOneOf200(store: IdempotencyStore, request: ReservationRequest): Promise<void> {
  const races = Array.from({ length: RACERS }, () => outcomeOf(store, retryOf(request)))
  const outcomes = await Promise.all(races)
  assert.equal(outcomes.filter((outcome) => outcome === 'reserved').length, 1)
  assert.equal(outcomes.filter((outcome) => outcome === 'running').length, RACERS - 1)
}

const finished = (text: string): Ending => ({ type: 'finished', result: Buffer.from(text) })
const NOT_STORED: Ending = { type: 'not_stored' }
const ABANDONED: Ending = { type: 'abandoned' }
const RELEASED: Ending = { type: 'released' }
const ENDINGS: readonly Ending[] = [finished('theirs'), NOT_STORED, ABANDONED, RELEASED]

const RESERVATION_RULES: StoreRules<IdempotencyStore> = {
  'a free key is reserved, and a retry is told how long the lease still lasts': async (store) => {
    const request = requestWith()
    await begin(store, request)
    const found = await store.reserve(retryOf(request))
    assert.equal(found.outcome, 'running')
    assert.ok(found.leaseLeftMs > 0 && found.leaseLeftMs <= LEASE_MS, `${found.leaseLeftMs} ms`)
  },

  'of 200 reservations at once one gets the key, of 200 that may rerun an abandoned one too':
    async (store) => {
      await expectOneOf200(store, requestWith())
      const request = requestWith()
      await store.settle(await begin(store, request), ABANDONED)
      await expectOneOf200(store, { ...request, rerunAbandoned: true })
    },

  'an owner that asks again gets its own reservation, with the same fence': async (store) => {
    const request = requestWith()
    const { fence } = await begin(store, request)
    const again = await Promise.all(Array.from({ length: 10 }, () => store.reserve(request)))
    for (const found of again) assert.deepEqual(found, { outcome: 'reserved', fence })
  },

  'another request under the same key is a mismatch, whatever has become of it': async (store) => {
    for (const ending of [undefined, finished('theirs'), NOT_STORED, ABANDONED]) {
      const request = requestWith()
      const run = await begin(store, request)
      if (ending !== undefined) await store.settle(run, ending)
      const other = retryOf(request, { fingerprint: randomUUID(), rerunAbandoned: true })
      assert.equal(await outcomeOf(store, other), 'mismatch', ending?.type)
    }
  },

  'a lease ends by itself or when its run is abandoned, and only who may rerun gets the key':
    async (store) => {
      for (const leaseMs of [SHORT_LEASE_MS, LEASE_MS]) {
        const request = requestWith({ leaseMs })
        const first = await begin(store, request)
        if (leaseMs === SHORT_LEASE_MS) await untilAbandoned(store, request)
        else assert.equal(await store.settle(first, ABANDONED), true)
        assert.equal(await outcomeOf(store, retryOf(request)), 'abandoned')
        const rerun = retryOf(request, { rerunAbandoned: true, leaseMs: LEASE_MS })
        const second = await begin(store, rerun)
        assert.ok(second.fence > first.fence, 'the fence grows')
        assert.equal(await outcomeOf(store, retryOf(request)), 'running')
      }
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

const LARGE_BYTES = 1_000_000
const EVERY_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => byte)
const RESULTS = [
  new Uint8Array(),
  Buffer.from('1|d|"\r\n\0é'),
  EVERY_BYTE,
  randomBytes(LARGE_BYTES),
]

async function resultOf(store: IdempotencyStore, request: ReservationRequest): Promise<string> {
  const found = await store.reserve(retryOf(request))
  assert.equal(found.outcome, 'finished')
  return Buffer.from(found.result).toString('base64')
}

const ENDING_RULES: StoreRules<IdempotencyStore> = {
  'a result comes back to every retry as it was given, to the byte': async (store) => {
    for (const result of RESULTS) {
      const request = requestWith()
      const run = await begin(store, request)
      assert.equal(await store.settle(run, { type: 'finished', result }), true)
      const expected = Buffer.from(result).toString('base64')
      assert.equal(await resultOf(store, request), expected)
      assert.equal(await resultOf(store, { ...request, rerunAbandoned: true }), expected)
    }
  },

  'a run ends once: its result, or that none is stored, stays, and is never rerun': async (
    store,
  ) => {
    for (const ending of [finished('first'), NOT_STORED]) {
      const request = requestWith()
      const run = await begin(store, request)
      const rerun = retryOf(request, { rerunAbandoned: true })
      assert.equal(await store.settle(run, ending), true)
      const found = await store.reserve(rerun)
      assert.equal(found.outcome, ending === NOT_STORED ? 'result_not_stored' : 'finished')
      assert.equal(await store.settle(run, ending), true, 'again')
      for (const late of ENDINGS.filter(({ type }) => type !== ending.type)) {
        assert.equal(await store.settle(run, late), false, late.type)
      }
      assert.equal(await store.renew(run), false)
      assert.deepEqual(await store.reserve(rerun), found)
    }
  },

  'a key that is released is free, for another request too, and its run cannot come back': async (
    store,
  ) => {
    const request = requestWith()
    const first = await begin(store, request)
    assert.equal(await store.settle(first, RELEASED), true)
    assert.equal(await store.settle(first, RELEASED), true)
    assert.equal(await store.renew(first), false)
    assert.equal(await store.settle(first, finished('late')), false)
    assert.notEqual(await outcomeOf(store, request), 'reserved')
    const second = await begin(store, retryOf(request, { fingerprint: 'another' }))
    assert.ok(second.fence > first.fence, 'the fence grows')
  },

  'a run that has lost its key changes nothing for the one that has it': async (store) => {
    for (const ending of ENDINGS) {
      const request = requestWith()
      const lost = await begin(store, request)
      await store.settle(lost, ABANDONED)
      const run = await begin(store, retryOf(request, { rerunAbandoned: true }))
      assert.equal(await store.renew(lost), false)
      assert.equal(await store.settle(lost, ending), false, ending.type)
      assert.equal(await outcomeOf(store, retryOf(request)), 'running')
      await store.settle(run, finished('ours'))
      assert.equal(await store.settle(lost, ending), false, ending.type)
      assert.equal(await resultOf(store, request), Buffer.from('ours').toString('base64'))
    }
  },

  'neither the owner nor the fence alone is enough': async (store) => {
    const request = requestWith()
    const run = await begin(store, request)
    for (const stranger of [
      { ...run, owner: 'another' },
      { ...run, fence: run.fence + 1 },
      { ...run, fence: run.fence - 1 },
    ]) {
      assert.equal(await store.renew(stranger), false)
      assert.equal(await store.settle(stranger, finished('theirs')), false)
    }
    assert.equal(await outcomeOf(store, retryOf(request)), 'running')
  },

  'a run that ends after its lease keeps its result where nobody has the key': async (store) => {
    const request = requestWith({ leaseMs: SHORT_LEASE_MS })
    const run = await begin(store, request)
    await untilAbandoned(store, request)
    assert.equal(await store.settle(run, finished('late')), true)
    assert.equal(await resultOf(store, request), Buffer.from('late').toString('base64'))
  },

  'a record is forgotten after its retention, and the fence of the next run grows': async (
    store,
  ) => {
    const request = requestWith({ leaseMs: 1, retentionMs: SHORT_LEASE_MS })
    const run = await begin(store, request)
    await store.settle(run, finished('short-lived'))
    let fence = 0
    await eventually('the record expires', async () => {
      const found = await store.reserve(retryOf(request))
      if (found.outcome === 'reserved') fence = found.fence
      return found.outcome === 'reserved'
    })
    assert.ok(fence > run.fence, 'the fence grows')
  },

  'a renewal and a result write a record that is gone again': async (store) => {
    const request = requestWith()
    const run = { ...(await begin(store, requestWith())), recordId: request.recordId }
    assert.equal(await store.renew(run), true)
    const retry = retryOf(request, { fingerprint: run.fingerprint })
    assert.equal(await outcomeOf(store, retry), 'running')
    assert.equal(await store.settle(run, finished('again')), true)
    assert.equal(await resultOf(store, retry), Buffer.from('again').toString('base64'))
  },
}
