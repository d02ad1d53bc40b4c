import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openExchange } from '../support/network/raw-exchange.js'
import { until } from '../support/until.js'
import { expectReplayOf, expectResult, expectUnknown } from './answers.js'
import type { ReceiverProcess } from './receiver-process.js'
import { newOrder, openScene, type Scene } from './scene.js'
import { LARGE_BYTES, type Stop } from './stops.js'

/** Where a write may be when its receiver is told to stop. */
const UNDER_WAY = [
  'reserving',
  'before the write',
  'after the write',
  'before storing',
  'storing',
  'stored',
  'before sending',
  'while sending',
] as const satisfies Stop[]

const ANSWER_AND_CLOSE = /^HTTP\/1.1 200 OK\r\n(?:.+\r\n)*Connection: close\r\n/

/** Lasts until the first retry also on a busy machine. */
const LONG_LEASE_MS = 5000
const SERVE_ON_MS = 6000
/** What waits for nothing ends in much less, what waits for nothing takes longer. */
const AT_ONCE_MS = 5000

let scene: Scene
let other: ReceiverProcess
beforeAll(async () => {
  scene = await openScene()
  other = await scene.launch()
})
afterAll(() => scene.close())

const get = (to: ReceiverProcess, path: string) => fetch(`http://127.0.0.1:${to.port}${path}`)

const statusesOf = async (to: ReceiverProcess) => [
  (await get(to, '/livez')).status,
  (await get(to, '/readyz')).status,
]

const noMoreConnections = (to: ReceiverProcess) =>
  until('no more connections are taken', () =>
    get(to, '/livez').then(
      () => false,
      () => true,
    ),
  )

describe('a write under way when SIGTERM comes', () => {
  it.each(['4', '5'] as const)(
    'is answered and its record finished, wherever it is: Express %s',
    async (express) => {
      const stopping = await scene.launch({ express })
      const sent = UNDER_WAY.map((stop) => {
        const order = newOrder('refuse')
        return { order, exchange: scene.send(stopping, order, { stopAt: stop }) }
      })
      await Promise.all(UNDER_WAY.map((stop) => stopping.reached(stop)))
      stopping.signal('SIGTERM')
      await noMoreConnections(stopping)
      stopping.goOn()
      for (const { order, exchange } of sent) {
        const answer = await exchange.answer
        await scene.expectWritten(order, answer)
        expectReplayOf(answer, await scene.send(other, order).answer)
      }
      expect(await stopping.exited).toBe(0)
    },
  )

  it('is answered also when further signals come', async () => {
    const stopping = await scene.launch()
    const order = newOrder('refuse')
    const exchange = scene.send(stopping, order, { stopAt: 'after the write' })
    await stopping.reached('after the write')
    for (const signal of ['SIGTERM', 'SIGTERM', 'SIGINT'] as const) {
      stopping.signal(signal)
      await delay(100)
    }
    stopping.goOn()
    await scene.expectWritten(order, await exchange.answer)
    expect(await stopping.exited).toBe(0)
  })

  it('is finished although its caller has hung up', async () => {
    const stopping = await scene.launch()
    const order = newOrder('refuse')
    const exchange = scene.send(stopping, order, { stopAt: 'after the write' })
    await stopping.reached('after the write')
    exchange.abort()
    await stopping.reached('closed')
    stopping.signal('SIGTERM')
    await noMoreConnections(stopping)
    stopping.goOn()
    expect(await stopping.exited).toBe(0)
    await scene.expectWritten(order, await scene.send(other, order).answer, { isReplayed: true })
  })

  it('is cut when it hangs, and retries get 409, or another run where that was asked for', async () => {
    const stopping = await scene.launch({ waitMs: 300, leaseMs: LONG_LEASE_MS })
    const orders = [newOrder('refuse'), newOrder('rerun')] as const
    const cut = orders.map((order) => scene.send(stopping, order, { stopAt: 'after the write' }))
    await stopping.reached('after the write', orders.length)
    stopping.signal('SIGTERM')
    expect(await stopping.exited).toBe(1)
    for (const { answer } of cut) expect(await answer).toMatchObject({ raw: '' })
    const [refused, rerun] = await Promise.all(orders.map((order) => scene.retry(other, order)))
    expect(refused?.inProgress).not.toHaveLength(0)
    expect(rerun?.inProgress).not.toHaveLength(0)
    if (refused) expectUnknown(refused.final)
    expect(await scene.effects(orders[0])).toHaveLength(1)
    const [first, second, ...others] = await scene.effects(orders[1])
    expect([second, others]).toEqual([expect.any(Number), []])
    expect(second).toBeGreaterThan(first ?? Number.NaN)
    if (rerun) expectResult(rerun.final, orders[1], { fence: second, isReplayed: false })
  })
})

describe('a receiver that is told to stop', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('serves on for a while: %s', async (signal) => {
    const stopping = await scene.launch({ serveOnMs: SERVE_ON_MS })
    expect(await statusesOf(stopping)).toEqual([200, 200])
    const asked = openExchange(stopping.port)
    const toldAt = performance.now()
    stopping.signal(signal)
    await until('it is not ready', async () => (await get(stopping, '/readyz')).status === 503)
    expect((await get(stopping, '/livez')).status).toBe(200)
    asked.send({ path: '/store' })
    expect(await asked.closed).toMatch(ANSWER_AND_CLOSE)
    const order = newOrder('refuse')
    await scene.expectWritten(order, await scene.send(stopping, order).answer)
    expect(await stopping.exited).toBe(0)
    expect(performance.now() - toldAt).toBeGreaterThan(SERVE_ON_MS)
  })

  it('closes a connection behind the answer that was under way on it', async () => {
    const stopping = await scene.launch()
    scene.redis.pause()
    const kept = openExchange(stopping.port)
    kept.send({ path: '/store' })
    await delay(200)
    stopping.signal('SIGTERM')
    await noMoreConnections(stopping)
    scene.redis.resume()
    expect(await kept.closed).toMatch(ANSWER_AND_CLOSE)
    expect(await stopping.exited).toBe(0)
  })

  it('is not held up by connections without a request', async () => {
    const stopping = await scene.launch()
    const idle = openExchange(stopping.port)
    idle.send({ path: '/livez' })
    const silent = openExchange(stopping.port)
    await until('the first is idle', async () => idle.received().includes('"phase"'))
    const toldAt = performance.now()
    stopping.signal('SIGTERM')
    expect(await stopping.exited).toBe(0)
    expect(performance.now() - toldAt).toBeLessThan(AT_ONCE_MS)
    await Promise.all([idle.closed, silent.closed])
  })

  it('is not held up by a response that waited behind another when its caller hung up', async () => {
    const stopping = await scene.launch()
    scene.redis.pause()
    const pipelined = openExchange(stopping.port)
    pipelined.send({ path: '/store' })
    pipelined.send({ path: '/store' })
    await delay(200)
    pipelined.socket.destroy()
    await delay(100)
    scene.redis.resume()
    await scene.storeAnswers(stopping)
    const toldAt = performance.now()
    stopping.signal('SIGTERM')
    expect(await stopping.exited).toBe(0)
    expect(performance.now() - toldAt).toBeLessThan(AT_ONCE_MS)
  })

  it('sends the whole of a large response to a slow reader', async () => {
    const stopping = await scene.launch()
    const slow = openExchange(stopping.port)
    slow.socket.pause()
    slow.send({ path: '/large' })
    await delay(300)
    stopping.signal('SIGTERM')
    await noMoreConnections(stopping)
    await delay(100)
    slow.socket.resume()
    expect((await slow.closed).length).toBeGreaterThan(LARGE_BYTES)
    expect(await stopping.exited).toBe(0)
  })
})
