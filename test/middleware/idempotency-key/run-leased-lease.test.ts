import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { memoryStore } from 'express-service-auth'
import { expect, it, onTestFinished, vi } from 'vitest'
import { describeReceivers, makeStage, problemOf } from '../../support/receiver/each-receiver.js'
import { call, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'

describeReceivers('The lease of a run', (bench) => {
  it('keeps its lease while it works, beyond its length', async () => {
    const options = { leaseSeconds: 1, whenAbandoned: 'rerun' } as const
    const { receiver, ...stages } = await bench.startHeld((res) => res.json({}), options)
    const key = newKey()
    const answer = call(receiver.port, { key })
    const { req } = await stages.entered
    // A renewal that fails is tried again.
    bench.store.fail('renew')
    await bench.store.asked('renew')
    bench.store.fail('renew', false)
    await bench.store.asked('renew', 5)
    expect(await call(receiver.port, { key })).toMatchObject({
      status: 409,
      problem: 'request-in-progress',
      headers: { 'retry-after': ['1'], 'cache-control': ['no-store'] },
    })
    expect(req.idempotency?.signal.aborted).toBe(false)
    stages.leave()
    expect((await answer).status).toBe(200)
    expect(receiver.handled).toBe(1)
  })

  it.each([Number.NaN, Infinity, -1])('of %d ms is retried after a second', async (leaseLeftMs) => {
    const receiver = await bench.start((_req, res) => void res.json({}))
    vi.spyOn(bench.store, 'reserve').mockResolvedValue({ outcome: 'running', leaseLeftMs })
    expect(await call(receiver.port, { key: newKey() })).toMatchObject({
      status: 409,
      headers: { 'retry-after': ['1'] },
    })
  })

  it('is no longer trusted after maxRunSeconds; what it ends with is kept all the same', async () => {
    const options = { leaseSeconds: 1, maxRunSeconds: 1 }
    const { receiver, ...stages } = await bench.startHeld(
      (res) => res.json({ late: true }),
      options,
    )
    const key = newKey()
    const answer = call(receiver.port, { key })
    const { signal } = (await stages.entered).req.idempotency ?? {}
    if (signal && !signal.aborted) await once(signal, 'abort')
    await until('the lease to end', async () => {
      return (await problemOf(receiver.port, key)) === 'outcome-unknown'
    })
    stages.leave()
    expect((await answer).body.toString()).toBe('{"late":true}')
    const retry = await call(receiver.port, { key })
    expect([retry.status, retry.body.toString()]).toEqual([200, '{"late":true}'])
    expect(receiver.handled).toBe(1)
  })

  it('answers its own caller when another run has taken the key, whose result stays', async () => {
    const first = makeStage()
    const receiver = await bench.start(
      async (req, res) => {
        if (!req.headers['x-slow']) return void res.json({ fence: req.idempotency?.fence })
        first.enter(res)
        await first.left
        res.json({ fence: req.idempotency?.fence })
      },
      { leaseSeconds: 1, maxRunSeconds: 1, whenAbandoned: 'rerun' },
    )
    const key = newKey()
    const slow = call(receiver.port, { key, headers: { 'x-slow': '1' } })
    await first.entered
    let second = await call(receiver.port, { key })
    await until('the second run', async () => {
      if (second.status === 409) second = await call(receiver.port, { key })
      return second.status === 200
    })
    first.leave()
    const [older, newer] = bench.store.fences
    expect(JSON.parse((await slow).body.toString())).toEqual({ fence: older })
    expect(JSON.parse(second.body.toString())).toEqual({ fence: newer })
    const retry = await call(receiver.port, { key })
    expect(JSON.parse(retry.body.toString())).toEqual({ fence: newer })
    expect(receiver.handled).toBe(2)
  })

  it('aborts its signal when its lease cannot be renewed in time', async () => {
    const receiver = await bench.start(
      async (req, res) => {
        const { signal } = req.idempotency ?? {}
        if (signal && !signal.aborted) await once(signal, 'abort')
        res.json({ aborted: signal?.aborted })
      },
      { leaseSeconds: 1 },
    )
    bench.store.fail('renew')
    expect((await call(receiver.port, { key: newKey() })).body.toString()).toBe('{"aborted":true}')
    expect(bench.store.renewals()).toBeGreaterThan(1)
  })

  it('aborts its signal at once when its lease is lost, and renews it no more', async () => {
    const renew = vi.fn(async () => false)
    const store = memoryStore()
    onTestFinished(() => store.close())
    const receiver = await bench.start(
      async (req, res) => {
        const { signal } = req.idempotency ?? {}
        if (signal && !signal.aborted) await once(signal, 'abort')
        await delay(500)
        res.json({})
      },
      { leaseSeconds: 1 },
      { store: { ...store, renew } },
    )
    expect((await call(receiver.port, { key: newKey() })).status).toBe(200)
    expect(renew).toHaveBeenCalledTimes(1)
  })
})
