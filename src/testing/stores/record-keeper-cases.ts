import assert from 'node:assert/strict'
import type {
  Ending,
  IdempotencyStore,
  ReservationRequest,
  Run,
} from '../../idempotency/leased/idempotency-store.js'
import type {
  RecordKeeper,
  RecordView,
  Resolution,
} from '../../idempotency/leased/record-keeper.js'
import {
  begin,
  outcomeOf,
  requestWith,
  retryOf,
  untilAbandoned,
} from './idempotency-store-cases.js'
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
  casesOf({ ...RECORD_RULES, ...RESOLUTION_RULES, ...FORGETTING_RULES, ...RACE_RULES }, open)

/**
 * A store whose records an operator can inspect.
 *
 * @inline
 */
type KeptStore = IdempotencyStore & RecordKeeper

/** The time that a slow machine may take between two calls. */
const SLACK_MS = 60_000
const DAY_MS = 86_400_000
/** How often calls at once are tried. */
const ROUNDS = 50

/** Results in the encoding of the middleware. */
const RUNS_RESULT = Buffer.from('[201,[["content-type","text/plain"]],3]\nrun')
const OPERATORS_RESULT: Uint8Array = Buffer.from('[200,[],8]\noperator')

const FREED: Resolution = { type: 'freed' }
const FINISHED: Resolution = { type: 'finished', result: OPERATORS_RESULT }
const FORGOTTEN: Resolution = { type: 'forgotten' }
/** The resolutions of a record whose run has left no result. */
const RESOLUTIONS: readonly Resolution[] = [FREED, FINISHED]
const ALL_RESOLUTIONS = [...RESOLUTIONS, FORGOTTEN]

const RESULT_KEPT: Ending = { type: 'finished', result: RUNS_RESULT }
const DAMAGED: Ending = { type: 'finished', result: Buffer.from('damaged') }
const ENDINGS: readonly Ending[] = [
  RESULT_KEPT,
  { type: 'not_stored' },
  { type: 'abandoned' },
  { type: 'released' },
]

interface ExpectedView {
  readonly ending?: Ending
  readonly state: RecordView['state']
  readonly allowedResolutions: readonly Resolution[]
}

/** Each stage of a run, with the state that an operator sees and the resolutions that are possible. */
const RUN_STAGES: Readonly<Record<string, ExpectedView>> = {
  'is under way': { state: 'running', allowedResolutions: [] },
  'has a result': { ending: RESULT_KEPT, state: 'finished', allowedResolutions: [FORGOTTEN] },
  'has a result that is not stored': {
    ending: { type: 'not_stored' },
    state: 'not_stored',
    allowedResolutions: [FINISHED, FORGOTTEN],
  },
  'was abandoned': {
    ending: { type: 'abandoned' },
    state: 'abandoned',
    allowedResolutions: RESOLUTIONS,
  },
  'was released': { ending: { type: 'released' }, state: 'freed', allowedResolutions: [] },
}

async function endedRun(
  store: KeptStore,
  ending: Ending,
  changes: Partial<ReservationRequest> = {},
): Promise<{ request: ReservationRequest; run: Run }> {
  const request = requestWith(changes)
  const run = await begin(store, request)
  assert.equal(await store.settle(run, ending), true)
  return { request, run }
}

const abandonedRun = (
  store: KeptStore,
  changes: Partial<ReservationRequest> = {},
): ReturnType<typeof endedRun> => endedRun(store, { type: 'abandoned' }, changes)

async function viewOf(store: KeptStore, { recordId }: { recordId: string }): Promise<RecordView> {
  const view = await store.inspect(recordId)
  assert.ok(view !== undefined, 'there is a record')
  return view
}

/** The part of the view that stays the same while no call changes the record. */
async function lastingViewOf(store: KeptStore, run: Run): Promise<Partial<RecordView>> {
  const { leaseLeftMs: _, expiresInMs: __, ...view } = await viewOf(store, run)
  return view
}

async function expectReplayed(store: KeptStore, request: ReservationRequest): Promise<void> {
  const found = await store.reserve(retryOf(request, { rerunAbandoned: true }))
  assert.equal(found.outcome, 'finished')
  assert.deepEqual(Buffer.from(found.result), OPERATORS_RESULT)
}

async function expectResolved(store: KeptStore, run: Run, as: Resolution): Promise<void> {
  assert.equal(await store.resolve(run.recordId, run.fence, as), true, as.type)
  const { state, fence } = await viewOf(store, run)
  const expected = as.type === 'forgotten' ? 'freed' : as.type
  assert.deepEqual({ state, fence }, { state: expected, fence: run.fence })
}

async function expectUnchanged(store: KeptStore, run: Run, as: Resolution): Promise<void> {
  const before = await lastingViewOf(store, run)
  assert.equal(await store.resolve(run.recordId, run.fence, as), false, as.type)
  assert.deepEqual(await lastingViewOf(store, run), before)
}

const STATE_RULES: StoreRules<KeptStore> = Object.fromEntries(
  Object.entries(RUN_STAGES).map(([name, { ending, state, allowedResolutions }]) => [
    `a run that ${name} is shown, and can be resolved only where nobody else can end it`,
    async (store) => {
      for (const as of ALL_RESOLUTIONS) {
        const request = requestWith()
        const run = await begin(store, request)
        if (ending) assert.equal(await store.settle(run, ending), true)
        const view = await viewOf(store, run)
        assert.equal(view.state, state)
        assert.equal(view.fence, run.fence)
        assert.equal(view.fingerprint, run.fingerprint)
        assert.equal(view.leaseLeftMs !== undefined, state === 'running')
        const bytes = ending?.type === 'finished' ? RUNS_RESULT.byteLength : undefined
        assert.equal(view.resultBytes, bytes)
        for (const fence of [run.fence - 1, run.fence + 1, 0]) {
          assert.equal(await store.resolve(run.recordId, fence, as), false, `fence ${fence}`)
        }
        if (allowedResolutions.includes(as)) await expectResolved(store, run, as)
        else await expectUnchanged(store, run, as)
      }
    },
  ]),
)

const RECORD_RULES: StoreRules<KeptStore> = {
  ...STATE_RULES,

  'a missing record is neither shown nor created': async (store) => {
    const request = requestWith()
    assert.equal(await store.inspect(request.recordId), undefined)
    for (const as of ALL_RESOLUTIONS) {
      for (const fence of [0, 1])
        assert.equal(await store.resolve(request.recordId, fence, as), false)
    }
    assert.equal(await store.inspect(request.recordId), undefined)
    await begin(store, request)
  },

  'a record reports its lease, expiry and start': async (store) => {
    const now = Date.now()
    const request = requestWith({ leaseMs: 60_000, retentionMs: 600_000 })
    const {
      leaseLeftMs = 0,
      expiresInMs = 0,
      begunAt = 0,
    } = await begin(store, request).then((run) => viewOf(store, run))
    assert.ok(leaseLeftMs > 0 && leaseLeftMs <= 60_000, `a lease of ${leaseLeftMs} ms`)
    assert.ok(expiresInMs > 600_000 && expiresInMs <= 660_000, `forgotten in ${expiresInMs} ms`)
    assert.ok(Math.abs(begunAt * 1000 - now) < SLACK_MS, `begun at ${begunAt}`)
  },

  '`canRead` decides whether a result counts as readable': async (store) => {
    const request = requestWith()
    const run = await begin(store, request)
    await store.settle(run, RESULT_KEPT)
    const told: unknown[] = []
    const canRead = async (result: Uint8Array, fingerprint: string): Promise<boolean> => {
      told.push([Buffer.from(result).toString(), fingerprint])
      return false
    }
    const view = await store.inspect(run.recordId, canRead)
    assert.deepEqual([view?.state, view?.fence], ['unreadable', run.fence])
    assert.deepEqual(told, [[RUNS_RESULT.toString(), run.fingerprint]])
    const resolve = (as: Resolution): Promise<boolean> => store.resolve(run.recordId, run.fence, as)
    assert.equal(await resolve({ ...FINISHED, canRead: () => true }), false)
    assert.equal(await resolve(FREED), false)
    assert.equal(await resolve({ ...FINISHED, canRead }), true)
    await expectReplayed(store, request)
  },

  'a resolution of another form throws a TypeError': async (store) => {
    const { run } = await abandonedRun(store)
    const { recordId, fence } = run
    const isTypeError = (error: unknown) => error instanceof TypeError
    const wrongEnds = [undefined, null, 'freed', {}, { type: 'released' }, { type: 'finished' }]
    for (const wrong of [...wrongEnds, { type: 'finished', result: 'text' }] as unknown[]) {
      await assert.rejects(
        async () => store.resolve(recordId, fence, wrong as Resolution),
        isTypeError,
      )
    }
    assert.equal((await viewOf(store, run)).state, 'abandoned')
  },
}

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
}

/** What is resolved at once, and in which ways. */
const RACES: Readonly<Record<string, readonly [Ending, readonly [Resolution, Resolution]]>> = {
  'a run that was abandoned': [{ type: 'abandoned' }, [FREED, FINISHED]],
  'a result that cannot be read': [DAMAGED, [FINISHED, FORGOTTEN]],
  'a result that is stored': [RESULT_KEPT, [FORGOTTEN, FORGOTTEN]],
}

const RACE_RULES: StoreRules<KeptStore> = Object.fromEntries(
  Object.entries(RACES).map(([what, [ending, resolutions]]) => [
    `of resolutions at once of ${what} one wins, and its end stays`,
    async (store) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { request, run } = await endedRun(store, ending)
        const wanted = round % 2 === 0 ? resolutions : resolutions.toReversed()
        const answers: boolean[] = await Promise.all(
          wanted.map((as) => store.resolve(run.recordId, run.fence, as)),
        )
        assert.equal(answers.filter((isDone) => isDone).length, 1)
        const winner = wanted[answers.indexOf(true)]
        const expected = winner?.type === 'forgotten' ? 'freed' : winner?.type
        assert.equal((await viewOf(store, run)).state, expected)
        if (winner === FINISHED) await expectReplayed(store, request)
      }
    },
  ]),
)
