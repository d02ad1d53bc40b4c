import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../support/until.js'
import { expectResult } from './answers.js'
import type { ReceiverProcess } from './receiver-process.js'
import { newOrder, openScene, type Scene } from './scene.js'
import type { Stop } from './stops.js'

const STOPS = [
  'before reserving',
  'reserved',
  'before the write',
  'after the write',
  'before storing',
  'stored',
  'before sending',
  'while sending',
] as const satisfies Stop[]

/** The rest of a lease. */
const IN_SECONDS = expect.stringMatching(/^[1-3]$/)

let scene: Scene
beforeAll(async () => {
  scene = await openScene()
})
afterAll(() => scene.close())

describe.each(['4', '5'] as const)('A caller that hangs up, Express %s', (express) => {
  let receiver: ReceiverProcess
  let other: ReceiverProcess
  beforeAll(async () => {
    ;[receiver, other] = await Promise.all([scene.launch({ express }), scene.launch({ express })])
  })

  describe.each(['refuse', 'rerun'] as const)('(%s)', (whenAbandoned) => {
    it.each(STOPS)('%s changes nothing: its retry gets the result', async (stop) => {
      const order = newOrder(whenAbandoned)
      const exchange = scene.send(receiver, order, { stopAt: stop })
      await receiver.reached(stop)
      exchange.abort()
      await receiver.reached('closed')
      const isReserved = stop !== 'before reserving'
      if (isReserved) {
        const isKept = ['stored', 'before sending', 'while sending'].includes(stop)
        const early = await scene.send(other, order).answer
        if (isKept) expect(early).toMatchObject({ status: 201, isReplayed: true })
        else expect(early).toMatchObject({ problem: 'request-in-progress', retryAfter: IN_SECONDS })
      }
      receiver.goOn()
      // Whoever comes first would run it.
      if (!isReserved) {
        await until('the run', async () => (await scene.effects(order)).length === 1)
      }
      const { final } = await scene.retry(other, order)
      const effects = await scene.effects(order)
      expect(effects).toHaveLength(1)
      expectResult(final, order, { fence: effects[0], isReplayed: true })
      expect((await scene.send(receiver, order).answer).raw).toBe(final.raw)
      expect(await scene.effects(order)).toEqual(effects)
    })
  })

  it('while too large a result flows ends it, and it is not run again', async () => {
    const order = newOrder('rerun', true)
    const exchange = scene.send(receiver, order, { stopAt: 'while streaming' })
    await receiver.reached('while streaming')
    exchange.abort()
    await receiver.reached('closed')
    for (let retry = 0; retry < 2; retry += 1) {
      const { status, problem } = await scene.send(other, order).answer
      expect({ status, problem }).toEqual({ status: 409, problem: 'result-not-stored' })
      receiver.goOn()
    }
    expect(await scene.effects(order)).toHaveLength(1)
  })
})
