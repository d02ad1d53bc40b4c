import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import type { IdempotencyEvent, RecordView, Resolution } from 'express-service-auth'
import { expect, it } from 'vitest'
import { encodeResult } from '../../src/held-response/result.js'
import { type Bench, describeReceivers, makeStage, problemOf } from '../support/each-receiver.js'
import { hearIdempotency } from '../support/idempotency-events.js'
import { type Answer, call, newKey } from '../support/order-calls.js'
import { until } from '../support/until.js'

const LEASE_MS = 1000
const FREED: Resolution = { type: 'freed' }
const FINISHED: Resolution = {
  type: 'finished',
  result: encodeResult({ status: 201, headers: [], body: Buffer.from('by hand') }),
}

interface Scene {
  readonly port: number
  readonly key: string
  readonly record: string
  readonly fence: number
  readonly signal: AbortSignal
  /** Lets the first run answer its caller. */
  finish(): Promise<Answer>
  readonly events: readonly IdempotencyEvent[]
}

/** A first run at work whose lease has ended; every later run answers at once. */
async function orphaned(bench: Bench, maxRunSeconds: number): Promise<Scene> {
  const stages = makeStage()
  const events = hearIdempotency()
  let runs = 0
  let signal: AbortSignal | undefined
  const receiver = await bench.start(
    async (req, res) => {
      runs += 1
      const run = runs
      if (run === 1) {
        signal = req.idempotency?.signal
        stages.enter(res)
        await stages.left
      }
      res.status(200).end(`run ${run}`)
    },
    { leaseSeconds: LEASE_MS / 1000, maxRunSeconds },
  )
  const { port } = receiver
  const key = newKey()
  // Only the run loses sight of its store.
  bench.store.fail('renew')
  const answer = call(port, { key })
  await stages.entered
  await until('the lease ends', async () => (await problemOf(port, key)) === 'outcome-unknown')
  const { record = '' } = events[0] ?? {}
  if (signal === undefined) throw new Error('the run has a signal')
  return {
    port,
    key,
    record,
    fence: bench.store.fences[0] ?? 0,
    signal,
    events,
    finish() {
      stages.leave()
      return answer
    },
  }
}

async function lasting(bench: Bench, record: string): Promise<Partial<RecordView>> {
  const { expiresInMs: _, ...view } = (await bench.keeper.inspect(record)) ?? {}
  return view
}

async function expectKeyLost({ events, record, fence }: Scene): Promise<void> {
  await until('the run is told', async () => events.some(({ reason }) => reason === 'key_lost'))
  const told = events.filter(({ reason }) => reason === 'key_lost')
  expect(told).toHaveLength(1)
  expect(told[0]).toMatchObject({ record, fence })
}

describeReceivers('A write that an operator has settled', (bench) => {
  it.each([
    ['at once', FREED, 0],
    ['at once', FINISHED, 0],
    ['after two leases', FREED, 2 * LEASE_MS],
    ['after two leases', FINISHED, 2 * LEASE_MS],
  ])('stays so when its run comes back %s ($1.type)', async (_, as, afterMs) => {
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
    const { record, fence, signal } = scene
    expect(await bench.keeper.resolve(record, fence, FINISHED)).toBe(true)
    const settled = await lasting(bench, record)
    const renewals = bench.store.renewals()
    bench.store.fail('renew', false)
    await bench.store.asked('renew', renewals + 1)
    if (!signal.aborted) await once(signal, 'abort')
    expect((await scene.finish()).body.toString()).toBe('run 1')
    await expectKeyLost(scene)
    expect(await lasting(bench, record)).toEqual(settled)
  })

  it('is not settled while its run renews its lease', async () => {
    const scene = await orphaned(bench, 60)
    const { port, key, record, fence } = scene
    const renewals = bench.store.renewals()
    bench.store.fail('renew', false)
    await bench.store.asked('renew', renewals + 1)
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
