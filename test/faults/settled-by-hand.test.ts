import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { IdempotencyEvent, RecordView, Resolution, Store } from 'express-service-auth'
import { beforeAll, describe, expect, it } from 'vitest'
import { encodeResult } from '../../src/idempotency/buffered-response/stored-result.js'
import { makeStage, problemOf } from '../support/receiver/each-receiver.js'
import { EXPRESS_MAJORS, type ExpressModule } from '../support/receiver/express-majors.js'
import { type Answer, call, newKey } from '../support/receiver/order-calls.js'
import { openOrders } from '../support/receiver/order-receiver.js'
import { MEMORY, REDIS } from '../support/stores/store-factories.js'
import { type WatchedStore, watchedStore } from '../support/stores/watched-store.js'
import { until } from '../support/until.js'

const LEASE_MS = 1000
const FREED: Resolution = { type: 'freed' }
const FINISHED: Resolution = {
  type: 'finished',
  result: encodeResult({ status: 201, headers: [], body: Buffer.from('by hand') }),
}

/** A receiver, and what an operator can do with its records. */
interface Bench {
  readonly express: ExpressModule
  readonly keeper: Store
}

interface Scene {
  readonly port: number
  readonly key: string
  readonly record: string
  readonly fence: number
  readonly signal: AbortSignal
  /** The store as the receiver sees it. */
  readonly store: WatchedStore
  /** Lets the first run answer its caller. */
  finish(): Promise<Answer>
}

const CHANNEL = 'express-service-auth:idempotency'
const events: IdempotencyEvent[] = []
const ends: (() => Promise<void>)[] = []
beforeAll(() => {
  const note = (event: unknown): void => void events.push(event as IdempotencyEvent)
  subscribe(CHANNEL, note)
  return async () => {
    unsubscribe(CHANNEL, note)
    await Promise.all(ends.map((end) => end()))
  }
})

/** A first run at work whose lease has ended; every later run answers at once. */
async function orphaned({ express, keeper }: Bench, maxRunSeconds: number): Promise<Scene> {
  const stages = makeStage()
  let record = ''
  const store = watchedStore({
    ...keeper,
    reserve(request) {
      record = request.recordId
      return keeper.reserve(request)
    },
  })
  let runs = 0
  let signal: AbortSignal | undefined
  const { port, close } = await openOrders({
    express,
    store,
    options: { leaseSeconds: LEASE_MS / 1000, maxRunSeconds },
    async handler(req, res) {
      runs += 1
      const run = runs
      if (run === 1) {
        signal = req.idempotency?.signal
        stages.enter(res)
        await stages.left
      }
      res.status(200).end(`run ${run}`)
    },
  })
  ends.push(close)
  const key = newKey()
  // Only the run loses sight of its store.
  store.fail('renew')
  const answer = call(port, { key })
  await stages.entered
  await until('the lease ends', async () => (await problemOf(port, key)) === 'outcome-unknown')
  const [fence = 0] = store.fences
  if (signal === undefined) throw new Error('the run has a signal')
  const finish = () => {
    stages.leave()
    return answer
  }
  return { port, key, record, fence, signal, store, finish }
}

async function lasting(bench: Bench, record: string): Promise<Partial<RecordView>> {
  const { expiresInMs: _, ...view } = (await bench.keeper.inspect(record)) ?? {}
  return view
}

async function expectKeyLost({ record, fence }: Scene): Promise<void> {
  const lost = () =>
    events.filter((event) => event.record === record && event.reason === 'key_lost')
  await until('the run is told', async () => lost().length > 0)
  const told = lost()
  expect(told).toHaveLength(1)
  expect(told[0]).toMatchObject({ record, fence })
}

const PLACES = [MEMORY, REDIS].flatMap((factory) =>
  EXPRESS_MAJORS.map(({ major, express }) => ({
    where: `${major}, ${factory.name}`,
    factory,
    express,
  })),
)

describe.concurrent.each(PLACES)('A write that an operator has settled, $where', (place) => {
  let bench: Bench
  beforeAll(async () => {
    const { store, close } = await place.factory.open()
    bench = { express: place.express, keeper: store }
    return close
  })

  it.each([
    ['freed', 'at once', FREED, 0],
    ['finished', 'at once', FINISHED, 0],
    ['freed', 'after two leases', FREED, 2 * LEASE_MS],
    ['finished', 'after two leases', FINISHED, 2 * LEASE_MS],
  ])('stays %s when its run comes back %s', async (_type, _when, as, afterMs) => {
    const scene = await orphaned(bench, 1)
    const { port, key, record, fence } = scene
    expect(await bench.keeper.inspect(record)).toMatchObject({ state: 'abandoned', fence })
    expect(await bench.keeper.resolve(record, fence, as)).toBe(true)
    const settled = await lasting(bench, record)
    await sleep(afterMs)
    const answer = await scene.finish()
    expect([answer.status, answer.body.toString()]).toEqual([200, 'run 1'])
    await expectKeyLost(scene)
    expect(await lasting(bench, record)).toEqual(settled)
    const retry = await call(port, { key })
    const expected = as === FREED ? [200, 'run 2'] : [201, 'by hand']
    expect([retry.status, retry.body.toString()]).toEqual(expected)
    expect((await call(port, { key })).body.equals(retry.body)).toBe(true)
  })

  it('is run again after it was freed, and its first run takes nothing from the second', async () => {
    const scene = await orphaned(bench, 1)
    const { port, key, record, fence } = scene
    expect(await bench.keeper.resolve(record, fence, FREED)).toBe(true)
    expect((await call(port, { key })).body.toString()).toBe('run 2')
    expect((await scene.finish()).body.toString()).toBe('run 1')
    await expectKeyLost(scene)
    const replayed = await call(port, { key })
    expect(replayed.body.toString()).toBe('run 2')
    expect(replayed.headers['idempotent-replayed']).toEqual(['true'])
  })

  it('is told to a run that renews its lease', async () => {
    const scene = await orphaned(bench, 60)
    const { record, fence, signal, store } = scene
    expect(await bench.keeper.resolve(record, fence, FINISHED)).toBe(true)
    const settled = await lasting(bench, record)
    const renewals = store.renewals()
    store.fail('renew', false)
    await store.asked('renew', renewals + 1)
    if (!signal.aborted) await once(signal, 'abort')
    expect((await scene.finish()).body.toString()).toBe('run 1')
    await expectKeyLost(scene)
    expect(await lasting(bench, record)).toEqual(settled)
  })

  it('is not settled while its run renews its lease', async () => {
    const scene = await orphaned(bench, 60)
    const { port, key, record, fence, store } = scene
    const renewals = store.renewals()
    store.fail('renew', false)
    await store.asked('renew', renewals + 1)
    await until('the lease is back', async () => {
      return (await bench.keeper.inspect(record))?.state === 'running'
    })
    for (const as of [FREED, FINISHED]) {
      expect(await bench.keeper.resolve(record, fence, as)).toBe(false)
    }
    expect((await scene.finish()).body.toString()).toBe('run 1')
    expect((await call(port, { key })).body.toString()).toBe('run 1')
  })
})
