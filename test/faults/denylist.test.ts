import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { APPLIED_WITHIN_MS, POLL_MS, report, WRITE_PATIENCE } from './denylist-figures.js'
import {
  controlToken,
  type DenylistScene,
  newTarget,
  openDenylistScene,
  targetOf,
} from './denylist-scene.js'
import { ask } from './denylist-traffic.js'

const RUNS = Number(process.env['DENYLIST_RUNS'] ?? 1)
/** Long enough for the denial to be in force meanwhile. */
const UNDER_WAY_MS = 1500

let redis: RedisServer
let scene: DenylistScene
beforeAll(async () => {
  redis = await startRedis()
  scene = await openDenylistScene({ host: redis.host, port: redis.port })
  await scene.launch()
  await scene.untilState('fresh')
})
afterAll(async () => {
  await scene.close()
  await redis.stop()
})

describe.each(['caller', 'key', 'token', 'issued-before'] as const)(
  'three receivers: %s',
  (kind) => {
    it(`deny and allow within a second, each of ${RUNS} runs`, async () => {
      const { receivers, desk } = scene
      const control = controlToken(scene)
      const { token, entry } = newTarget(scene, kind)
      const traffic = scene.startTraffic([token, control])
      await traffic.settled('accepted', { token, receivers })
      const began = performance.now()
      const denied: number[] = []
      const allowed: number[] = []
      for (let run = 0; run < RUNS; run += 1) {
        const underWay = receivers.map(({ port }) =>
          ask(undefined, { port, token, path: `/slow/${UNDER_WAY_MS}` }),
        )
        // What is written comes at any place between two polls.
        await sleep(50 + Math.random() * POLL_MS)
        await desk.deny(entry, WRITE_PATIENCE)
        const deniedAt = performance.now()
        await traffic.settled('refused', { token, receivers })
        await sleep(POLL_MS)
        denied.push(traffic.lastAcceptance({ token, receivers, since: deniedAt }))
        expect(await Promise.all(underWay)).toEqual(receivers.map(() => 200))

        await sleep(Math.random() * POLL_MS)
        await desk.allow(targetOf(entry), WRITE_PATIENCE)
        const allowedAt = performance.now()
        await traffic.settled('accepted', { token, receivers })
        allowed.push(traffic.firstAcceptance({ token, receivers, since: allowedAt }))
      }
      await traffic.stop()
      report(`deny ${kind}`, denied)
      report(`allow ${kind}`, allowed)
      for (const ms of [...denied, ...allowed]) expect(ms).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
      for (const outcome of ['refused', 'unknown', 'other'] as const) {
        expect(traffic.has(outcome, { token: control, receivers, since: began })).toBe(false)
      }
    }, 300_000)
  },
)
