import { once } from 'node:events'
import { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { RequestHandler, Response } from 'express'
import { afterEach, expect, it } from 'vitest'
import { describeReceivers, makeStage } from '../../support/receiver/each-receiver.js'
import { call, callRaw, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'

describeReceivers('A response that is not held back', (bench) => {
  const types = () => bench.store.endings.map(({ type }) => type)

  /** What a handler answers to no call: its run would renew its lease in the tests that follow. */
  const unanswered: Response[] = []
  afterEach(() => {
    for (const res of unanswered.splice(0)) res.destroy()
  })

  it.each<[string, RequestHandler]>([
    ['end', (_req, res) => void res.end('x'.repeat(101))],
    ['json', (_req, res) => void res.json('x'.repeat(100))],
    [
      'write and end',
      (_req, res) => {
        res.write('x'.repeat(50))
        res.write('x'.repeat(50))
        res.end('x')
      },
    ],
    ['a pipe', (_req, res) => void Readable.from(['x'.repeat(60), 'x'.repeat(60)]).pipe(res)],
    [
      'flushHeaders',
      (_req, res) => {
        res.flushHeaders()
        res.write('x'.repeat(200))
        res.end()
      },
    ],
  ])(
    'flows whole beyond the limit, the record saying so before its first byte: %s',
    async (_n, handler) => {
      const bare = await bench.startBare(handler)
      const receiver = await bench.start(handler, { maxResponseBytes: 100 })
      const key = newKey()
      const letGo = bench.store.hold('settle')
      const raw = await callRaw(receiver.port, { key, headers: { connection: 'close' } })
      await bench.store.asked('settle')
      await delay(20)
      expect(raw.received()).toBe('')
      letGo()
      await raw.closed
      const without = await call(bare.port, {})
      const whole = await call(receiver.port, { key: newKey() })
      expect(whole.body.equals(without.body)).toBe(true)
      expect(whole.headers).toEqual(without.headers)
      expect(raw.received()).toContain('x'.repeat(50))
      expect(await call(receiver.port, { key })).toMatchObject({
        status: 409,
        problem: 'result-not-stored',
        headers: { 'cache-control': ['no-store'] },
      })
      expect(receiver.handled).toBe(2)
      expect(types()[0]).toBe('not_stored')
    },
  )

  it('keeps a body of exactly the limit, and with a limit of 0 only empty ones', async () => {
    const handler: RequestHandler = (req, res) => void res.end(String(req.query['body'] ?? ''))
    const receiver = await bench.start(handler, { maxResponseBytes: 3 })
    const key = newKey()
    for (let time = 0; time < 2; time += 1) {
      const answer = await call(receiver.port, { key, path: '/orders/1?body=abc' })
      expect(answer.body.toString()).toBe('abc')
    }
    expect(types()).toEqual(['finished'])
    const strict = await bench.start(handler, { maxResponseBytes: 0 })
    const [full, empty] = [newKey(), newKey()]
    expect((await call(strict.port, { key: full, path: '/orders/1?body=a' })).status).toBe(200)
    expect((await call(strict.port, { key: full, path: '/orders/1?body=a' })).problem).toBe(
      'result-not-stored',
    )
    await call(strict.port, { key: empty })
    expect((await call(strict.port, { key: empty })).headers['idempotent-replayed']).toEqual([
      'true',
    ])
  })

  it.each([
    ['text/event-stream', 'not_stored'],
    ['Text/Event-Stream; charset=utf-8', 'not_stored'],
    [' text/event-stream ;x', 'not_stored'],
    ['text/event-streams', 'finished'],
    ['text/event-stream-x', 'finished'],
    ['x text/event-stream', 'finished'],
  ])('is an event stream by its media type alone: %j', async (type, ending) => {
    const receiver = await bench.start((_req, res) => {
      res.setHeader('content-type', type)
      res.end('data: 1')
    })
    await call(receiver.port, { key: newKey() })
    expect(types()).toEqual([ending])
  })

  it('is never rerun, also while it flows and after its caller hung up', async () => {
    let handled: Response | undefined
    const receiver = await bench.start(
      (_req, res) => {
        handled = res
        res.type('text/event-stream').flushHeaders()
        res.write('data: 1\n\n')
      },
      { leaseSeconds: 1, whenAbandoned: 'rerun' },
    )
    const key = newKey()
    const raw = await callRaw(receiver.port, { key })
    await until('the first event', async () => raw.received().includes('data: 1'))
    // Longer than the lease, which has ended.
    await delay(1200)
    expect((await call(receiver.port, { key })).problem).toBe('result-not-stored')
    handled?.write('data: 2\n\n')
    await until('the second event', async () => raw.received().includes('data: 2'))
    raw.socket.destroy()
    await until('the end', async () => types().at(-1) === 'not_stored')
    expect((await call(receiver.port, { key })).problem).toBe('result-not-stored')
    expect(receiver.handled).toBe(1)
  })

  it('calls back and drains those who wait while the record is being written', async () => {
    const seen: string[] = []
    const receiver = await bench.start(
      async (_req, res) => {
        expect(res.write('a'.repeat(50), () => seen.push('held'))).toBe(true)
        expect(res.write('b'.repeat(60), () => seen.push('opening'))).toBe(false)
        await once(res, 'drain')
        seen.push('drained')
        res.end('c', () => seen.push('ended'))
      },
      { maxResponseBytes: 100 },
    )
    const answer = await call(receiver.port, { key: newKey() })
    expect(answer.body.toString()).toBe(`${'a'.repeat(50)}${'b'.repeat(60)}c`)
    await until('the last call', async () => seen.length === 4)
    expect(seen.sort()).toEqual(['drained', 'ended', 'held', 'opening'])
  })

  it('flows although the store is unreachable', async () => {
    const receiver = await bench.start((_req, res) => void res.end('x'.repeat(200)), {
      maxResponseBytes: 100,
    })
    bench.store.fail('settle')
    const answer = await call(receiver.port, { key: newKey() })
    expect(answer.body.length).toBe(200)
    expect(answer.isBroken).toBe(false)
  })

  it.each<[string, RequestHandler]>([
    [
      'destroys it',
      async (_req, res) => {
        res.write('x'.repeat(200))
        await once(res, 'drain')
        res.destroy()
      },
    ],
    [
      'destroys it before the record says that it flows',
      (_req, res) => {
        res.write('x'.repeat(200))
        res.destroy()
      },
    ],
  ])('ends when its handler %s', async (_what, handler) => {
    const options = { maxResponseBytes: 100, whenAbandoned: 'rerun' } as const
    const receiver = await bench.start(handler, options)
    const key = newKey()
    expect((await call(receiver.port, { key })).isBroken).toBe(true)
    await until('the end', async () => types().at(-1) === 'not_stored')
    expect((await call(receiver.port, { key })).problem).toBe('result-not-stored')
  })

  it('ends, too, when it outgrows the limit after its caller hung up', async () => {
    const stages = makeStage()
    const receiver = await bench.start(
      async (_req, res) => {
        const isClosed = once(res, 'close')
        stages.enter(res)
        await isClosed
        Readable.from(Array.from({ length: 50 }, () => 'x'.repeat(20))).pipe(res)
      },
      { maxResponseBytes: 100, whenAbandoned: 'rerun' },
    )
    const key = newKey()
    const raw = await callRaw(receiver.port, { key })
    await stages.entered
    raw.socket.destroy()
    await until('the end', async () => types().at(-1) === 'not_stored')
    expect((await call(receiver.port, { key })).problem).toBe('result-not-stored')
    expect(receiver.handled).toBe(1)
  })

  it('ends, too, when it waits behind another on a connection that its caller closes', async () => {
    for (const moment of ['flowing', 'held'] as const) {
      const stages = makeStage()
      const receiver = await bench.start(
        async (req, res) => {
          if (req.params['id'] === 'first') return void unanswered.push(res)
          if (moment === 'held') {
            stages.enter(res)
            await stages.left
          }
          res.type('text/event-stream').write('data: 1\n\n')
        },
        { leaseSeconds: 1 },
      )
      const key = newKey()
      const paths = [{ path: '/orders/first' }, { path: '/orders/2' }]
      const calls = paths.map((each, index) => ({ ...each, key: index === 0 ? newKey() : key }))
      const raw = await callRaw(receiver.port, ...calls)
      await (moment === 'held' ? stages.entered : bench.store.asked('settle'))
      await delay(20)
      raw.socket.destroy()
      if (moment === 'held') {
        const res = await stages.entered
        await until('the end of the connection', async () => res.req.socket.closed)
        stages.leave()
      }
      await until('the end', async () => types().at(-1) === 'not_stored')
      expect(types()).toEqual(['not_stored'])
      const { problem } = await call(receiver.port, { key, path: '/orders/2' })
      expect(problem).toBe('result-not-stored')
    }
  })

  it('leaves nothing behind on its connection', async () => {
    let handled: Response | undefined
    const receiver = await bench.start(
      (_req, res) => {
        handled = res
        res.write('x'.repeat(60))
        res.end('x'.repeat(60))
      },
      { maxResponseBytes: 100 },
    )
    const listeners: number[] = []
    const raw = await callRaw(receiver.port)
    for (let answered = 1; answered <= 20; answered += 1) {
      await raw.send({ key: newKey() })
      await until('the answer', async () => raw.received().split('0\r\n\r\n').length > answered)
      listeners.push(handled?.req.socket.listenerCount('close') ?? Number.NaN)
    }
    expect(Math.max(...listeners)).toBe(listeners[0])
  })

  it('is freed at its end when its handler has released it', async () => {
    const receiver = await bench.start(
      (req, res) => {
        req.idempotency?.release()
        res.end('x'.repeat(200))
      },
      { maxResponseBytes: 100 },
    )
    const key = newKey()
    await call(receiver.port, { key })
    expect((await call(receiver.port, { key })).body.length).toBe(200)
    expect(receiver.handled).toBe(2)
  })
})
