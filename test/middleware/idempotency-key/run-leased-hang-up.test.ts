import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { PassThrough, pipeline } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Response } from 'express'
import { expect, it } from 'vitest'
import { FILE } from '../../idempotency/buffered-response/ways-to-send.js'
import { describeReceivers, makeStage, problemOf } from '../../support/receiver/each-receiver.js'
import { call, callRaw, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'

describeReceivers('A run whose caller or handler hangs up', (bench) => {
  it('goes on when its caller hangs up, and the retry gets its result', async () => {
    const { receiver, ...stages } = await bench.startHeld((res) => {
      res.write('held ')
      res.end('back')
    })
    const key = newKey()
    const raw = await callRaw(receiver.port, { key })
    const res = await stages.entered
    raw.socket.destroy()
    if (!res.closed) await once(res, 'close')
    expect((await call(receiver.port, { key })).problem).toBe('request-in-progress')
    stages.leave()
    await bench.store.asked('settle')
    await until('the end', async () => bench.store.endings.length === 1)
    const retry = await call(receiver.port, { key })
    expect(retry.body.toString()).toBe('held back')
    expect(receiver.handled).toBe(1)
  })

  it.each<[string, (caller: Socket, server: Server) => unknown]>([
    ['its caller ends the connection', (caller) => caller.end()],
    ['its caller resets the connection', (caller) => caller.resetAndDestroy()],
    ['its caller sends no HTTP', (caller) => caller.write('what?\r\n\r\n')],
    [
      'its caller sends a request of another size than announced',
      (caller) => caller.write('GET / HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n'),
    ],
    ['a timeout strikes', () => {}],
    ['the server closes', (_caller, server) => [server.close(), server.closeAllConnections()]],
  ])('goes on when %s', async (what, act) => {
    const { receiver, ...stages } = await bench.startHeld((res) => res.json({ ran: true }))
    if (what === 'a timeout strikes') receiver.server.setTimeout(50)
    const raw = await callRaw(receiver.port, { key: newKey() })
    const res = await stages.entered
    act(raw.socket, receiver.server)
    if (!res.closed) await once(res, 'close')
    await new Promise(setImmediate)
    stages.leave()
    await until('the end', async () => bench.store.endings.length > 0)
    expect(bench.store.endings).toEqual([{ type: 'finished', answer: true }])
  })

  it.each<[string, (res: Response) => unknown]>([
    ['json', (res) => res.json({ ran: true })],
    ['write and end', (res) => res.write('ran') && res.end()],
    ['a pipe', (res) => createReadStream(FILE).pipe(res)],
  ])('goes on, too, when it waits behind another on its connection: %s', async (_way, send) => {
    const stages = makeStage()
    const receiver = await bench.start(async (req, res) => {
      if (req.params['id'] === 'second') stages.enter(res)
      await stages.left
      send(res)
    })
    const [first, second] = ['first', 'second'].map((id) => ({
      key: newKey(),
      path: `/orders/${id}`,
    }))
    const raw = await callRaw(receiver.port, first ?? {}, second ?? {})
    const res = await stages.entered
    raw.socket.destroy()
    await until('the end of the connection', async () => res.req.socket.closed)
    await delay(5)
    stages.leave()
    await until('both ends', async () => bench.store.endings.length === 2)
    expect(bench.store.endings.map(({ type }) => type)).not.toContain('abandoned')
    for (const each of [first, second]) {
      expect((await call(receiver.port, each)).headers['idempotent-replayed']).toEqual(['true'])
    }
    expect(receiver.handled).toBe(2)
  })

  it('goes on when its caller hung up before it was reserved, or while it is stored', async () => {
    const receiver = await bench.start((_req, res) => void res.json({ ran: true }))
    for (const step of ['reserve', 'settle'] as const) {
      const key = newKey()
      const letGo = bench.store.hold(step)
      const asked = bench.store.asked(step, step === 'reserve' ? 1 : 2)
      const raw = await callRaw(receiver.port, { key })
      await asked
      raw.socket.destroy()
      await raw.closed
      await delay(20)
      letGo()
      await until('the end', async () => bench.store.endings.length > (step === 'reserve' ? 0 : 1))
      expect((await call(receiver.port, { key })).body.toString()).toBe('{"ran":true}')
    }
    expect(receiver.handled).toBe(2)
  })

  it('ends without a result where Node or Express drops the answer', async () => {
    const ways: [string, (res: Response, source: PassThrough) => void][] = [
      ['a pipe', (res, source) => void source.pipe(res)],
      ['stream.pipeline', (res, source) => void pipeline(source, res, () => {})],
      ['a pipe of a pipe', (res, source) => void source.pipe(new PassThrough()).pipe(res)],
    ]
    for (const [name, send] of ways) {
      const stages = makeStage()
      const receiver = await bench.start((_req, res) => {
        const source = new PassThrough()
        send(res, source)
        source.write('some')
        stages.enter(res)
      })
      const key = newKey()
      const raw = await callRaw(receiver.port, { key })
      await stages.entered
      expect(await problemOf(receiver.port, key)).toBe('request-in-progress')
      raw.socket.destroy()
      await until(name, async () => bench.store.endings.length > 0)
      expect(bench.store.endings[0]?.type).toBe('abandoned')
      expect(await problemOf(receiver.port, key), name).toBe('outcome-unknown')
      expect(receiver.handled).toBe(1)
    }
  })

  it('is not taken for dropped when what was piped had come to its end', async () => {
    const stages = makeStage()
    const receiver = await bench.start((_req, res) => {
      const source = createReadStream(FILE, { end: 9 })
      source.pipe(res, { end: false })
      source.once('close', async () => {
        stages.enter(res)
        await stages.left
        res.end('committed')
      })
    })
    const key = newKey()
    const raw = await callRaw(receiver.port, { key })
    const res = await stages.entered
    raw.socket.destroy()
    if (!res.closed) await once(res, 'close')
    await delay(20)
    expect(await problemOf(receiver.port, key)).toBe('request-in-progress')
    stages.leave()
    await until('the end', async () => bench.store.endings.length > 0)
    expect(bench.store.endings).toEqual([{ type: 'finished', answer: true }])
  })

  it('ends without a result, and its signal aborts, where the handler destroys it', async () => {
    let signal: AbortSignal | undefined
    const receiver = await bench.start((req, res) => {
      signal = req.idempotency?.signal
      res.write('some')
      res.destroy()
      res.end('more')
    })
    const key = newKey()
    expect((await call(receiver.port, { key })).isBroken).toBe(true)
    await until('the end', async () => bench.store.endings.length > 0)
    expect(bench.store.endings).toEqual([{ type: 'abandoned', answer: true }])
    expect(await problemOf(receiver.port, key)).toBe('outcome-unknown')
    expect(signal?.aborted).toBe(true)
    expect(receiver.handled).toBe(1)
  })

  it('ends without a result where Express breaks a response that had begun', async () => {
    const receiver = await bench.start((_req, res, next) => {
      res.write('some')
      next(new Error('too late'))
    })
    const key = newKey()
    const first = await call(receiver.port, { key })
    expect(first).toMatchObject({ isBroken: true, status: 0 })
    await until('the end', async () => bench.store.endings.length > 0)
    expect(await problemOf(receiver.port, key)).toBe('outcome-unknown')
    expect(receiver.handled).toBe(1)
  })
})
