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
  casesOf({ ...STAGE_RULES, ...RECORD_RULES, ...RACE_RULES }, open)

/**
 * A store whose records an operator can inspect.
 *
 * @inline
 */
type KeptStore = IdempotencyStore & RecordKeeper

/** The time that a slow machine may take between two calls. */
const SLACK_MS = 60_000
const DAY_MS = 86_400_000
const SHORT_LEASE_MS = 100

/** Results in the encoding of the middleware. */
const RUNS_RESULT = Buffer.from('[201,[["content-type","text/plain"]],3]\nrun')
const OPERATORS_RESULT: Uint8Array = Buffer.from('[200,[],8]\noperator')

const FREED: Resolution = { type: 'freed' }
const FINISHED: Resolution = { type: 'finished', result: OPERATORS_RESULT }
const FORGOTTEN: Resolution = { type: 'forgotten' }
const RESOLUTIONS: readonly Resolution[] = [FREED, FINISHED, FORGOTTEN]

const RESULT_KEPT: Ending = { type: 'finished', result: RUNS_RESULT }
const NOT_STORED: Ending = { type: 'not_stored' }
const ABANDONED: Ending = { type: 'abandoned' }
const RELEASED: Ending = { type: 'released' }
const DAMAGED: Ending = { type: 'finished', result: Buffer.from('damaged') }
const ENDINGS: readonly Ending[] = [RESULT_KEPT, NOT_STORED, ABANDONED, RELEASED]

interface Stage {
  readonly ending?: Ending
  readonly state: RecordView['state']
  readonly allowed: readonly Resolution[]
}

/** Each stage of a run, with the state that an operator sees and the resolutions that are possible. */
const STAGES: Readonly<Record<string, Stage>> = {
  'is under way': { state: 'running', allowed: [] },
  'has a result': { ending: RESULT_KEPT, state: 'finished', allowed: [FORGOTTEN] },
  'has a result that is not stored': {
    ending: NOT_STORED,
    state: 'not_stored',
    allowed: [FINISHED, FORGOTTEN],
  },
  'was abandoned': { ending: ABANDONED, state: 'abandoned', allowed: [FREED, FINISHED] },
  'was released': { ending: RELEASED, state: 'freed', allowed: [] },
}

interface KnownRun {
  readonly request: ReservationRequest
  readonly run: Run
}

async function runOf(
  store: KeptStore,
  ending: Ending | undefined,
  changes: Partial<ReservationRequest> = {},
): Promise<KnownRun> {
  const request = requestWith(changes)
  const run = await begin(store, request)
  if (ending !== undefined) assert.equal(await store.settle(run, ending), true)
  return { request, run }
}

async function viewOf(store: KeptStore, { recordId }: Run): Promise<RecordView> {
  const view = await store.inspect(recordId)
  assert.ok(view !== undefined, 'there is a record')
  return view
}

/** The part of the view that stays the same while no call changes the record. */
async function lastingViewOf(store: KeptStore, run: Run): Promise<Partial<RecordView>> {
  const { leaseLeftMs: _, expiresInMs: __, ...view } = await viewOf(store, run)
  return view
}

const resolveAs = (store: KeptStore, run: Run, as: Resolution): Promise<boolean> =>
  store.resolve(run.recordId, run.fence, as)

async function expectResolved(store: KeptStore, run: Run, as: Resolution): Promise<void> {
  assert.equal(await resolveAs(store, run, as), true, as.type)
  const { state, fence } = await viewOf(store, run)
  assert.deepEqual({ state, fence }, { state: stateAfter(as), fence: run.fence })
}

const stateAfter = ({ type }: Resolution): RecordView['state'] =>
  type === 'finished' ? 'finished' : 'freed'

async function expectUnchanged(store: KeptStore, run: Run, as: Resolution): Promise<void> {
  const before = await lastingViewOf(store, run)
  assert.equal(await resolveAs(store, run, as), false, as.type)
  assert.deepEqual(await lastingViewOf(store, run), before)
}

async function expectReplayed(store: KeptStore, request: ReservationRequest): Promise<void> {
  const found = await store.reserve(retryOf(request, { rerunAbandoned: true }))
  assert.equal(found.outcome, 'finished')
  assert.deepEqual(Buffer.from(found.result), OPERATORS_RESULT)
}

async function expectShown(store: KeptStore, run: Run, { state, ending }: Stage): Promise<void> {
  const view = await viewOf(store, run)
  assert.equal(view.state, state)
  assert.equal(view.fence, run.fence)
  assert.equal(view.fingerprint, run.fingerprint)
  assert.equal(view.leaseLeftMs !== undefined, state === 'running')
  const bytes = ending?.type === 'finished' ? RUNS_RESULT.byteLength : undefined
  assert.equal(view.resultBytes, bytes)
}

/** Neither the run that was resolved nor another resolution changes what the operator has said. */
async function expectFinal(store: KeptStore, run: Run, as: Resolution): Promise<void> {
  const resolved = await lastingViewOf(store, run)
  assert.equal(await store.renew(run), false, 'renew')
  for (const late of ENDINGS) assert.equal(await store.settle(run, late), false, late.type)
  const others = as === FINISHED ? [FREED, FINISHED] : RESOLUTIONS
  for (const other of others) assert.equal(await resolveAs(store, run, other), false, other.type)
  assert.deepEqual(await lastingViewOf(store, run), resolved)
}

async function expectNextRun(store: KeptStore, run: Run, next: ReservationRequest): Promise<void> {
  const { fence } = await begin(store, next)
  assert.ok(fence > run.fence, 'the fence grows')
  assert.equal((await viewOf(store, run)).state, 'running')
  for (const as of RESOLUTIONS) await expectUnchanged(store, run, as)
}

const STAGE_RULES: StoreRules<KeptStore> = Object.fromEntries(
  Object.entries(STAGES).map(([name, stage]) => [
    `a run that ${name} is shown, and can be resolved only where nobody else can end it`,
    async (store) => {
      for (const as of RESOLUTIONS) {
        for (const other of [{}, { fingerprint: 'another' }]) {
          const { request, run } = await runOf(store, stage.ending)
          await expectShown(store, run, stage)
          for (const fence of [run.fence - 1, run.fence + 1, 0]) {
            assert.equal(await store.resolve(run.recordId, fence, as), false, `fence ${fence}`)
          }
          if (!stage.allowed.includes(as)) {
            await expectUnchanged(store, run, as)
            continue
          }
          await expectResolved(store, run, as)
          await expectFinal(store, run, as)
          if (as !== FINISHED) await expectNextRun(store, run, retryOf(request, other))
          else await expectReplayed(store, request)
        }
      }
    },
  ]),
)

/** What follows a resolution: the endings of consecutive runs. */
const LATER_RUNS: readonly (readonly Ending[])[] = [
  [],
  ...ENDINGS.map((ending) => [ending]),
  [RELEASED, RELEASED],
  [ABANDONED, RELEASED],
]

async function expectKept(store: KeptStore, run: Run): Promise<void> {
  const { expiresInMs = 0 } = await viewOf(store, run)
  const leastMs = Math.max(run.retentionMs, DAY_MS) - SLACK_MS
  assert.ok(expiresInMs > leastMs, `forgotten in ${expiresInMs} ms`)
}

const RECORD_RULES: StoreRules<KeptStore> = {
  'a missing record is neither shown nor created': async (store) => {
    const request = requestWith()
    assert.equal(await store.inspect(request.recordId), undefined)
    for (const as of RESOLUTIONS) {
      for (const fence of [0, 1])
        assert.equal(await store.resolve(request.recordId, fence, as), false)
    }
    assert.equal(await store.inspect(request.recordId), undefined)
    await begin(store, request)
  },

  'a record reports its lease, expiry and start': async (store) => {
    const now = Date.now()
    const { run } = await runOf(store, undefined, { leaseMs: 60_000, retentionMs: 600_000 })
    const { leaseLeftMs = 0, expiresInMs = 0, begunAt = 0 } = await viewOf(store, run)
    assert.ok(leaseLeftMs > 0 && leaseLeftMs <= 60_000, `a lease of ${leaseLeftMs} ms`)
    assert.ok(expiresInMs > 600_000 && expiresInMs <= 660_000, `forgotten in ${expiresInMs} ms`)
    assert.ok(Math.abs(begunAt * 1000 - now) < SLACK_MS, `begun at ${begunAt}`)
  },

  '`canRead` decides whether a result counts as readable': async (store) => {
    const { request, run } = await runOf(store, RESULT_KEPT)
    const told: unknown[] = []
    const canRead = async (result: Uint8Array, fingerprint: string): Promise<boolean> => {
      told.push([Buffer.from(result).toString(), fingerprint])
      return false
    }
    const view = await store.inspect(run.recordId, canRead)
    assert.deepEqual([view?.state, view?.fence], ['unreadable', run.fence])
    assert.deepEqual(told, [[RUNS_RESULT.toString(), run.fingerprint]])
    assert.equal(await resolveAs(store, run, { ...FINISHED, canRead: () => true }), false)
    assert.equal(await resolveAs(store, run, FREED), false)
    assert.equal(await resolveAs(store, run, { ...FINISHED, canRead }), true)
    await expectReplayed(store, request)
  },

  'a resolution of another form throws a TypeError': async (store) => {
    const { run } = await runOf(store, ABANDONED)
    const isTypeError = (error: unknown) => error instanceof TypeError
    const wrongEnds = [undefined, null, 'freed', {}, { type: 'released' }, { type: 'finished' }]
    for (const wrong of [...wrongEnds, { type: 'finished', result: 'text' }] as unknown[]) {
      await assert.rejects(async () => resolveAs(store, run, wrong as Resolution), isTypeError)
    }
    assert.equal((await viewOf(store, run)).state, 'abandoned')
  },

  'an answer that an operator gives is for no other request': async (store) => {
    const { request, run } = await runOf(store, ABANDONED)
    await expectResolved(store, run, FINISHED)
    assert.equal(await outcomeOf(store, retryOf(request, { fingerprint: 'another' })), 'mismatch')
  },

  'a lease that has ended by itself can be resolved, one that has not cannot': async (store) => {
    const { request, run } = await runOf(store, undefined, { leaseMs: SHORT_LEASE_MS })
    await untilAbandoned(store, request)
    assert.equal(await store.renew({ ...run, leaseMs: SLACK_MS }), true)
    for (const as of RESOLUTIONS) await expectUnchanged(store, run, as)
    assert.equal(await store.settle(run, ABANDONED), true)
    await expectResolved(store, run, FINISHED)
  },

  'what a resolution leaves is kept for a day at least and as long as the record, whatever later runs do':
    async (store) => {
      for (const retentionMs of [1000, 3 * DAY_MS]) {
        const changes = { leaseMs: 1000, retentionMs }
        const answered = await runOf(store, ABANDONED, changes)
        await expectResolved(store, answered.run, FINISHED)
        await expectKept(store, answered.run)
        for (const endings of LATER_RUNS) {
          const { request, run } = await runOf(store, ABANDONED, changes)
          await expectResolved(store, run, FREED)
          await expectKept(store, run)
          for (const ending of endings) {
            const next = await begin(store, retryOf(request, { rerunAbandoned: true }))
            assert.equal(await store.renew(next), true)
            assert.equal(await store.settle(next, ending), true, ending.type)
            await expectKept(store, run)
          }
          assert.equal(await store.settle(run, RESULT_KEPT), false)
        }
      }
    },
}

/** How often calls at once are tried. */
const ROUNDS = 50

type Contender = Resolution | 'renew'

/** What is ended at once, and in which ways. */
const RACES: Readonly<Record<string, readonly [Ending, readonly [Contender, Contender]]>> = {
  'a run that was abandoned': [ABANDONED, [FREED, FINISHED]],
  'a run that was abandoned and renews': [ABANDONED, ['renew', FINISHED]],
  'a result that cannot be read': [DAMAGED, [FINISHED, FORGOTTEN]],
  'a result that is stored': [RESULT_KEPT, [FORGOTTEN, FORGOTTEN]],
}

const RACE_RULES: StoreRules<KeptStore> = Object.fromEntries(
  Object.entries(RACES).map(([what, [ending, contenders]]) => [
    `of calls at once on ${what} one wins, and its end stays`,
    async (store) => {
      for (let round = 0; round < ROUNDS; round++) {
        const { request, run } = await runOf(store, ending)
        const wanted = round % 2 === 0 ? contenders : contenders.toReversed()
        const answers: boolean[] = await Promise.all(
          wanted.map((as) => (as === 'renew' ? store.renew(run) : resolveAs(store, run, as))),
        )
        assert.equal(answers.filter((isDone) => isDone).length, 1)
        const winner = wanted[answers.indexOf(true)] ?? 'renew'
        const expected = winner === 'renew' ? 'running' : stateAfter(winner)
        assert.equal((await viewOf(store, run)).state, expected)
        if (winner === FINISHED) await expectReplayed(store, request)
      }
    },
  ]),
)
