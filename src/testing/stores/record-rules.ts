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
import { begin, requestWith, retryOf } from './reservation-rules.js'
import type { StoreRules } from './store-case.js'

/**
 * A store whose records an operator can inspect.
 *
 * @inline
 */
export type KeptStore = IdempotencyStore & RecordKeeper

/** The time that a slow machine may take between two calls. */
export const SLACK_MS = 60_000
export const DAY_MS = 86_400_000
/** How often calls at once are tried. */
export const ROUNDS = 50

/** Results in the encoding of the middleware. */
const RUNS_RESULT = Buffer.from('[201,[["content-type","text/plain"]],3]\nrun')
export const OPERATORS_RESULT: Uint8Array = Buffer.from('[200,[],8]\noperator')

export const FREED: Resolution = { type: 'freed' }
export const FINISHED: Resolution = { type: 'finished', result: OPERATORS_RESULT }
export const FORGOTTEN: Resolution = { type: 'forgotten' }
/** The resolutions of a record whose run has left no result. */
export const RESOLUTIONS: readonly Resolution[] = [FREED, FINISHED]
const ALL_RESOLUTIONS = [...RESOLUTIONS, FORGOTTEN]

export const RESULT_KEPT: Ending = { type: 'finished', result: RUNS_RESULT }
export const ENDINGS: readonly Ending[] = [
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

export async function abandonedRun(
  store: KeptStore,
  changes: Partial<ReservationRequest> = {},
): Promise<{ request: ReservationRequest; run: Run }> {
  const request = requestWith(changes)
  const run = await begin(store, request)
  assert.equal(await store.settle(run, { type: 'abandoned' }), true)
  return { request, run }
}

export async function viewOf(
  store: KeptStore,
  { recordId }: { recordId: string },
): Promise<RecordView> {
  const view = await store.inspect(recordId)
  assert.ok(view !== undefined, 'there is a record')
  return view
}

/** The part of the view that stays the same while no call changes the record. */
export async function lastingViewOf(store: KeptStore, run: Run): Promise<Partial<RecordView>> {
  const { leaseLeftMs: _, expiresInMs: __, ...view } = await viewOf(store, run)
  return view
}

export async function expectReplayed(store: KeptStore, request: ReservationRequest): Promise<void> {
  const found = await store.reserve(retryOf(request, { rerunAbandoned: true }))
  assert.equal(found.outcome, 'finished')
  assert.deepEqual(Buffer.from(found.result), OPERATORS_RESULT)
}

export async function expectResolved(store: KeptStore, run: Run, as: Resolution): Promise<void> {
  assert.equal(await store.resolve(run.recordId, run.fence, as), true, as.type)
  const { state, fence } = await viewOf(store, run)
  const expected = as.type === 'forgotten' ? 'freed' : as.type
  assert.deepEqual({ state, fence }, { state: expected, fence: run.fence })
}

export async function expectUnchanged(store: KeptStore, run: Run, as: Resolution): Promise<void> {
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

export const RECORD_RULES: StoreRules<KeptStore> = {
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
