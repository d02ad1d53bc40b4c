import { setTimeout as delay } from 'node:timers/promises'
import type { Response } from 'express'
import { expect, it } from 'vitest'
import { FILE } from '../../idempotency/buffered-response/ways-to-send.js'
import { describeReceivers, makeStage } from '../../support/receiver/each-receiver.js'
import { call, callRaw, newKey } from '../../support/receiver/order-calls.js'
import { until } from '../../support/until.js'

describeReceivers('A run', (bench) => {
  it.each<[string, (res: Response) => void]>([
    ['json', (res) => void res.json({ a: 1 })],
    [
      'writeHead, flushHeaders and write',
      (res) => {
        res.writeHead(200)
        res.flushHeaders()
        res.write('x')
        res.end()
      },
    ],
    ['sendFile', (res) => void res.sendFile(FILE)],
  ])('stores before any byte reaches the socket: %s', async (_name, send) => {
    const receiver = await bench.start((_req, res) => send(res))
    const letGo = bench.store.hold('settle')
    const raw = await callRaw(receiver.port, { key: newKey(), headers: { connection: 'close' } })
    await bench.store.asked('settle')
    await delay(30)
    expect(raw.received()).toBe('')
    letGo()
    await raw.closed
    expect(raw.received()).toMatch(/^HTTP\/1.1 200/)
    expect(bench.store.endings).toEqual([{ type: 'finished', answer: true }])
  })

  it('looks ended and begun to the handler while its result is being stored', async () => {
    const stages = makeStage()
    const receiver = await bench.start((_req, res) => {
      res.once('finish', () => events.push('finish'))
      res.end('x', () => events.push('end called back'))
      stages.enter(res)
    })
    const events: string[] = []
    const letGo = bench.store.hold('settle')
    const answer = call(receiver.port, { key: newKey() })
    const res = await stages.entered
    await bench.store.asked('settle')
    expect([res.headersSent, res.writableEnded, res.writableFinished]).toEqual([true, true, false])
    expect(() => res.setHeader('a', 'b')).toThrow(/after they are sent/)
    res.end('second')
    const late = new Promise((resolve) => res.write('third', resolve))
    expect(await late).toMatchObject({ code: 'ERR_STREAM_WRITE_AFTER_END' })
    expect(events).toEqual([])
    letGo()
    expect((await answer).body.toString()).toBe('x')
    expect(events.sort()).toEqual(['end called back', 'finish'])
  })

  it('lets 1xx responses pass at once', async () => {
    const stages = makeStage()
    const receiver = await bench.start(async (_req, res) => {
      res.writeProcessing()
      res.writeEarlyHints({ link: '</a.css>; rel=preload' })
      stages.enter(res)
      await stages.left
      res.json({})
    })
    const raw = await callRaw(receiver.port, { key: newKey(), headers: { connection: 'close' } })
    await stages.entered
    await until('the hints', async () => raw.received().includes('a.css'))
    expect(raw.received()).toMatch(/^HTTP\/1.1 102 Processing\r\n\r\nHTTP\/1.1 103 Early Hints/)
    expect(raw.received()).not.toContain('HTTP/1.1 200')
    stages.leave()
    await raw.closed
    expect(raw.received()).toContain('HTTP/1.1 200')
  })

  it('is freed at its end when the handler says that nothing has happened', async () => {
    const receiver = await bench.start((req, res) => {
      req.idempotency?.release()
      res.status(503).json({})
    })
    const key = newKey()
    for (const run of [1, 2, 3]) {
      const answer = await call(receiver.port, { key })
      expect(answer.status).toBe(503)
      expect(answer.headers['idempotent-replayed']).toBeUndefined()
      expect(receiver.handled).toBe(run)
    }
    const [first = 0, second = 0, third = 0] = bench.store.fences
    expect(first < second && second < third).toBe(true)
    expect(Number.isSafeInteger(third)).toBe(true)
  })

  it('is freed also when it is released and destroyed', async () => {
    const receiver = await bench.start((req, res) => {
      req.idempotency?.release()
      res.destroy()
    })
    const key = newKey()
    await call(receiver.port, { key })
    await until('the end', async () => bench.store.endings.length > 0)
    await call(receiver.port, { key })
    expect(receiver.handled).toBe(2)
  })

  it('answers its caller when its result cannot be stored, and is then abandoned', async () => {
    const receiver = await bench.start((_req, res) => void res.json({ done: true }), {
      leaseSeconds: 1,
    })
    const key = newKey()
    bench.store.fail('settle')
    expect((await call(receiver.port, { key })).body.toString()).toBe('{"done":true}')
    bench.store.fail('settle', false)
    await until('the lease to end', async () => {
      const { problem } = await call(receiver.port, { key })
      if (problem !== 'outcome-unknown') expect(problem).toBe('request-in-progress')
      return problem === 'outcome-unknown'
    })
    expect(receiver.handled).toBe(1)
  })
})
