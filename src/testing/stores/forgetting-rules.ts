import assert from 'node:assert/strict'
import type { Ending, ReservationRequest, Run } from '../../idempotency/leased/idempotency-store.js'
import {
  DAY_MS,
  ENDINGS,
  expectResolved,
  expectUnchanged,
  FORGOTTEN,
  type KeptStore,
  RESOLUTIONS,
  RESULT_KEPT,
  ROUNDS,
  SLACK_MS,
  seen,
} from './record-rules.js'
import { begin, requestWith, retryOf } from './reservation-rules.js'
import type { StoreRules } from './store-case.js'

/** The endings of runs that have finished. */
const FINISHED_ENDINGS: readonly Ending[] = [RESULT_KEPT, { type: 'streamed' }]

async function finished(
  store: KeptStore,
  ending: Ending,
): Promise<{ request: ReservationRequest; run: Run }> {
  const request = requestWith()
  const run = await begin(store, request)
  assert.equal(await store.settle(run, ending), true)
  return { request, run }
}

export const FORGETTING_RULES: StoreRules<KeptStore> = {
  'a finished run can be forgotten once: the next request runs, and the old run changes nothing':
    async (store) => {
      for (const ending of FINISHED_ENDINGS) {
        for (const fingerprint of [undefined, 'another']) {
          const { request, run } = await finished(store, ending)
          await expectResolved(store, run, FORGOTTEN)
          for (const as of [FORGOTTEN, ...RESOLUTIONS]) await expectUnchanged(store, run, as)
          const { expiresInMs = 0 } = await seen(store, run)
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
    const { run } = await finished(store, { type: 'finished', result: Buffer.from('damaged') })
    await expectResolved(store, run, FORGOTTEN)
  },

  'of operators who forget at once one wins': async (store) => {
    for (let round = 0; round < ROUNDS; round++) {
      const { run } = await finished(store, RESULT_KEPT)
      const forget = (): Promise<boolean> => store.resolve(run.key, run.fence, FORGOTTEN)
      const answers: boolean[] = await Promise.all([forget(), forget()])
      assert.equal(answers.filter((isDone) => isDone).length, 1)
    }
  },

  'of an operator who forgets and a response that still streams one wins': async (store) => {
    for (let round = 0; round < ROUNDS; round++) {
      const { run } = await finished(store, { type: 'streamed' })
      const forget = (): Promise<boolean> => store.resolve(run.key, run.fence, FORGOTTEN)
      const stream = (): Promise<boolean> => store.settle(run, { type: 'streaming' })
      const calls = round % 2 === 0 ? [forget, stream] : [stream, forget]
      const answers: boolean[] = await Promise.all(calls.map((call) => call()))
      assert.equal(answers.filter((isDone) => isDone).length, 1)
      const isForgotten: boolean | undefined = answers[calls.indexOf(forget)]
      assert.equal((await seen(store, run)).state, isForgotten ? 'freed' : 'not_stored')
    }
  },
}
