import assert from 'node:assert/strict'
import type { Ending, ReservationRequest, Run } from '../../idempotency/leased/idempotency-store.js'
import type { Resolution } from '../../idempotency/leased/record-keeper.js'
import {
  abandonedRun,
  DAY_MS,
  ENDINGS,
  expectReplayed,
  expectResolved,
  expectUnchanged,
  FINISHED,
  FORGOTTEN,
  FREED,
  type KeptStore,
  lastingViewOf,
  OPERATORS_RESULT,
  RECORD_RULES,
  RESOLUTIONS,
  RESULT_KEPT,
  ROUNDS,
  SLACK_MS,
  viewOf,
} from './record-rules.js'
import { begin, outcomeOf, requestWith, retryOf, untilAbandoned } from './reservation-rules.js'
import { casesOf, type StoreCase, type StoreOpener, type StoreRules } from './store-case.js'

/**
 * The rules of a store that is also a `RecordKeeper`, as cases for any test runner.
 *
 * @throws TypeError if it is given no function.
 *
 * @example
 * ```ts
 * import { memoryStore } from 'express-service-auth'
 * import { recordKeeperCases } from 'express-service-auth/testing'
 *
 * for (const { name, run } of recordKeeperCases(() => memoryStore())) {
 *   await run()
 *   console.log(`ok: ${name}`)
 * }
 * ```
 */
export const recordKeeperCases = (open: StoreOpener<KeptStore>): readonly StoreCase[] =>
  casesOf({ ...RECORD_RULES, ...RESOLUTION_RULES, ...FORGETTING_RULES }, open)

const SHORT_LEASE_MS = 100

/** Each list has the endings of consecutive runs. */
const LATER_RUNS: readonly (readonly Ending[])[] = [
  ...ENDINGS.map((ending) => [ending]),
  [{ type: 'released' }, { type: 'released' }],
  [{ type: 'abandoned' }, { type: 'released' }],
]

const RESOLUTION_RULES: StoreRules<KeptStore> = {
  'a key that is freed can be taken, by another request too, and its fence grows': async (
    store,
  ) => {
    for (const fingerprint of [undefined, 'another']) {
      const { request, run } = await abandonedRun(store)
      await expectResolved(store, run, FREED)
      const retry = retryOf(request, fingerprint === undefined ? {} : { fingerprint })
      const next = await begin(store, retry)
      assert.ok(next.fence > run.fence, 'the fence grows')
      assert.equal((await viewOf(store, run)).state, 'running')
    }
  },

  'an answer that an operator gives comes back to every retry, and to no other request': async (
    store,
  ) => {
    const { request, run } = await abandonedRun(store)
    await expectResolved(store, run, FINISHED)
    await expectReplayed(store, request)
    assert.equal(await outcomeOf(store, retryOf(request, { fingerprint: 'another' })), 'mismatch')
    for (const as of RESOLUTIONS) await expectUnchanged(store, run, as)
  },

  'a lease that has ended by itself can be resolved, one that has not cannot': async (store) => {
    const request = requestWith({ leaseMs: SHORT_LEASE_MS })
    const run = await begin(store, request)
    await untilAbandoned(store, request)
    assert.equal(await store.renew({ ...run, leaseMs: SLACK_MS }), true)
    for (const as of RESOLUTIONS) await expectUnchanged(store, run, as)
    assert.equal(await store.settle(run, { type: 'abandoned' }), true)
    await expectResolved(store, run, FINISHED)
  },

  'an old run that comes back changes nothing of what was resolved': async (store) => {
    for (const as of RESOLUTIONS) {
      const { request, run } = await abandonedRun(store)
      await expectResolved(store, run, as)
      const resolved = await lastingViewOf(store, run)
      assert.equal(await store.renew(run), false, 'renew')
      for (const ending of ENDINGS)
        assert.equal(await store.settle(run, ending), false, ending.type)
      assert.deepEqual(await lastingViewOf(store, run), resolved)
      if (as.type === 'finished') await expectReplayed(store, request)
      else await begin(store, retryOf(request))
    }
  },

  'what a resolution leaves is kept for a day at least, and as long as the record': async (
    store,
  ) => {
    for (const as of RESOLUTIONS) {
      for (const retentionMs of [1000, 3 * DAY_MS]) {
        const { run } = await abandonedRun(store, { leaseMs: 1000, retentionMs })
        await expectResolved(store, run, as)
        const { expiresInMs = 0 } = await viewOf(store, run)
        const expected = Math.max(retentionMs, DAY_MS)
        assert.ok(expiresInMs > expected - SLACK_MS, `${expiresInMs} ms`)
        assert.ok(expiresInMs <= expected, `${expiresInMs} ms`)
      }
    }
  },

  'what an operator has freed stays marked as long, whatever later runs do': async (store) => {
    for (const retentionMs of [1000, 3 * DAY_MS]) {
      const least = Math.max(retentionMs, DAY_MS) - SLACK_MS
      for (const endings of LATER_RUNS) {
        const { request, run } = await abandonedRun(store, { leaseMs: 1000, retentionMs })
        await expectResolved(store, run, FREED)
        for (const ending of endings) {
          const next = await begin(store, retryOf(request, { rerunAbandoned: true }))
          assert.equal(await store.renew(next), true)
          assert.equal(await store.settle(next, ending), true, ending.type)
          const { expiresInMs = 0 } = await viewOf(store, run)
          assert.ok(expiresInMs > least, `${ending.type}: ${expiresInMs} ms`)
        }
        assert.equal(await store.settle(run, RESULT_KEPT), false)
      }
    }
  },

  'of resolutions at once one wins, and its end stays': async (store) => {
    for (let round = 0; round < ROUNDS; round++) {
      const { request, run } = await abandonedRun(store)
      const wanted: readonly Resolution[] = round % 2 === 0 ? [FREED, FINISHED] : [FINISHED, FREED]
      const answers: boolean[] = await Promise.all(
        wanted.map((as) => store.resolve(run.recordId, run.fence, as)),
      )
      assert.equal(answers.filter((isDone) => isDone).length, 1)
      const winner = wanted[answers.indexOf(true)]
      assert.equal((await viewOf(store, run)).state, winner?.type)
      if (winner === FINISHED) await expectReplayed(store, request)
    }
  },

  'of resolutions of a result that cannot be read one wins': async (store) => {
    const canRead = (result: Uint8Array): boolean => Buffer.from(result).equals(OPERATORS_RESULT)
    for (let round = 0; round < ROUNDS; round++) {
      const run = await begin(store, requestWith())
      await store.settle(run, { type: 'finished', result: Buffer.from('damaged') })
      const resolve = (): Promise<boolean> =>
        store.resolve(run.recordId, run.fence, {
          type: 'finished',
          result: OPERATORS_RESULT,
          canRead,
        })
      const answers: boolean[] = await Promise.all([resolve(), resolve()])
      assert.equal(answers.filter((isDone) => isDone).length, 1)
    }
  },

  'of a resolution and a run that renews at once one wins': async (store) => {
    for (let round = 0; round < ROUNDS; round++) {
      const { run } = await abandonedRun(store)
      const resolve = (): Promise<boolean> => store.resolve(run.recordId, run.fence, FINISHED)
      const renew = (): Promise<boolean> => store.renew(run)
      const calls = round % 2 === 0 ? [resolve, renew] : [renew, resolve]
      const answers: boolean[] = await Promise.all(calls.map((call) => call()))
      assert.equal(answers.filter((isDone) => isDone).length, 1)
      const isResolved: boolean | undefined = answers[calls.indexOf(resolve)]
      assert.equal((await viewOf(store, run)).state, isResolved ? 'finished' : 'running')
    }
  },
}

/** The endings of runs that have finished. */
const FINISHED_ENDINGS: readonly Ending[] = [RESULT_KEPT, { type: 'not_stored' }]

async function endedRun(
  store: KeptStore,
  ending: Ending,
): Promise<{ request: ReservationRequest; run: Run }> {
  const request = requestWith()
  const run = await begin(store, request)
  assert.equal(await store.settle(run, ending), true)
  return { request, run }
}

const FORGETTING_RULES: StoreRules<KeptStore> = {
  'a finished run can be forgotten once: the next request runs, and the old run changes nothing':
    async (store) => {
      for (const ending of FINISHED_ENDINGS) {
        for (const fingerprint of [undefined, 'another']) {
          const { request, run } = await endedRun(store, ending)
          await expectResolved(store, run, FORGOTTEN)
          for (const as of [FORGOTTEN, ...RESOLUTIONS]) await expectUnchanged(store, run, as)
          const { expiresInMs = 0 } = await viewOf(store, run)
          assert.ok(expiresInMs > DAY_MS - SLACK_MS, `${expiresInMs} ms`)
          assert.equal(await store.renew(run), false, 'renew')
          for (const late of ENDINGS) assert.equal(await store.settle(run, late), false, late.type)
          const next = await begin(
            store,
            retryOf(request, fingerprint === undefined ? {} : { fingerprint }),
          )
          assert.ok(next.fence > run.fence, 'the fence grows')
          await expectUnchanged(store, run, FORGOTTEN)
          assert.equal(await store.settle(next, RESULT_KEPT), true)
          await expectResolved(store, next, FORGOTTEN)
        }
      }
    },

  'a result that cannot be read can be forgotten': async (store) => {
    const { run } = await endedRun(store, { type: 'finished', result: Buffer.from('damaged') })
    await expectResolved(store, run, FORGOTTEN)
  },

  'of operators who forget at once one wins': async (store) => {
    for (let round = 0; round < ROUNDS; round++) {
      const { run } = await endedRun(store, RESULT_KEPT)
      const forget = (): Promise<boolean> => store.resolve(run.recordId, run.fence, FORGOTTEN)
      const answers: boolean[] = await Promise.all([forget(), forget()])
      assert.equal(answers.filter((isDone) => isDone).length, 1)
    }
  },
}
