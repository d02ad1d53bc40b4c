import { OutgoingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline, Readable, Transform } from 'node:stream'
import type { RequestHandler, Response } from 'express'
import { expect, it } from 'vitest'
import { hearIdempotency } from '../../support/observe/idempotency-events.js'
import { describeReceivers, makeStage, problemOf } from '../../support/receiver/each-receiver.js'
import { call, callRaw, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'

describeReceivers('A response that ends in another way than by its own functions', (bench) => {
  it.each<[string, (res: Response) => unknown]>([
    ['the prototype’s end', (res) => OutgoingMessage.prototype.end.call(res, 'around', 'utf8')],
    ['end behind a head', (res) => ServerResponse.prototype.end.call(res.status(201), 'x', 'utf8')],
    ['socket.destroy before the head', (res) => res.req.socket.destroy()],
    ['socket.destroy with an error', (res) => res.req.socket.destroy(new Error('given up'))],
    ['a pipeline into the socket that fails', (res) => failInto(res.req.socket)],
    ['destroy with an error', (res) => res.destroy(new Error('given up'))],
    ['socket.end before the head', (res) => res.req.socket.end()],
    ['socket.destroySoon', (res) => res.req.socket.destroySoon()],
    ['socket.resetAndDestroy', (res) => res.req.socket.resetAndDestroy()],
    ['socket.end behind the head', (res) => res.writeHead(200).req.socket.end()],
    ['socket.end with bytes', (res) => res.socket?.end('HTTP/1.1 200 OK\r\n\r\n')],
  ])('ends its run at once, the outcome unknown: %s', async (_way, endAround) => {
    const events = hearIdempotency()
    const receiver = await bench.start((_req, res) => void endAround(res), { leaseSeconds: 3600 })
    const key = newKey()
    await call(receiver.port, { key })
    await until('the end', async () => bench.store.endings.length > 0)
    expect(bench.store.endings).toEqual([{ type: 'abandoned', answer: true }])
    expect(await problemOf(receiver.port, key)).toBe('outcome-unknown')
    expect(receiver.handled).toBe(1)
    expect(events.map(({ reason }) => reason)).toContain('abandoned')
  })

  it('is sent although its server closes while it is being stored', async () => {
    const receiver = await bench.start((_req, res) => {
      res.end('committed')
      ended.push(res.writableEnded, res.headersSent)
    })
    const ended: boolean[] = []
    const letGo = bench.store.hold('settle')
    const raw = await callRaw(receiver.port, { key: newKey() })
    await bench.store.asked('settle')
    expect(ended).toEqual([true, true])
    receiver.server.close()
    letGo()
    await Promise.race([
      until('the answer', async () => raw.received().includes('committed')),
      raw.closed,
    ])
    expect(raw.received()).toContain('committed')
  })

  it.each<[string, RequestHandler]>([
    ['answers twice', (_req, res) => void res.end('committed').json({})],
    ['fails behind its answer', (_req, res) => fail(res.end('committed'))],
    ['destroys its response', (_req, res) => void res.end('committed').destroy()],
    ['destroys its connection', (_req, res) => void res.end('committed').req.socket.destroy()],
    [
      'destroys its connection with an error',
      (_req, res) => void res.end('committed').req.socket.destroy(new Error('given up')),
    ],
    ['ends its connection', (_req, res) => void res.end('committed').req.socket.end()],
    ['closes its connection soon', (_req, res) => res.end('committed').req.socket.destroySoon()],
  ])('is kept although its handler %s while it is being stored', async (_what, handler) => {
    const receiver = await bench.start(handler)
    const key = newKey()
    const letGo = bench.store.hold('settle')
    const raw = await callRaw(receiver.port, { key })
    await bench.store.asked('settle')
    await new Promise(setImmediate)
    letGo()
    await raw.closed
    await until('the end', async () => bench.store.endings.length > 0)
    expect(bench.store.endings).toEqual([{ type: 'finished', answer: true }])
    expect((await call(receiver.port, { key })).body.toString()).toBe('committed')
  })

  it('is not ended by the errors of others on its connection', async () => {
    const stages = makeStage()
    const unanswered: Response[] = []
    const receiver = await bench.start(async (req, res) => {
      if (req.params['id'] === 'first') {
        stages.enter(res)
        await stages.left
        res.end('first')
        return
      }
      unanswered.push(res)
      res.req.socket.destroy()
    })
    const [first, second] = [newKey(), newKey()]
    await callRaw(
      receiver.port,
      { key: first, path: '/orders/first' },
      { key: second, path: '/orders/2' },
    )
    await stages.entered
    await bench.store.asked('reserve', 2)
    stages.leave()
    await until('the end', async () => bench.store.endings.length > 0)
    expect(bench.store.endings).toEqual([{ type: 'finished', answer: true }])
    const retry = await call(receiver.port, { key: first, path: '/orders/first' })
    expect(retry.body.toString()).toBe('first')
    // Its run would renew its lease in the tests that follow.
    for (const res of unanswered) res.end()
  })
})

function fail(_res: Response): never {
  throw new Error('behind the answer')
}

function failInto(socket: Socket): void {
  pipeline(Readable.from(['HTTP/1.1 ']), failing(), socket, () => {})
}

const failing = (): Transform =>
  new Transform({ transform: (_chunk, _encoding, done) => done(new Error('given up')) })
