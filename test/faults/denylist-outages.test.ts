import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type RedisServer, startRedis } from '../support/redis.js'
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.js'
import { until } from '../support/until.js'
import { APPLIED_WITHIN_MS, report } from './denylist-figures.js'
import {
  controlToken,
  type DenylistReceiver,
  type DenylistScene,
  newTarget,
  openDenylistScene,
  targetOf,
} from './denylist-scene.js'

const OUTAGE_MS = Number(process.env['DENYLIST_OUTAGE_MS'] ?? 3000)
/** The desk asks for as long as an outage takes. */
const PATIENTLY = { timeoutMs: OUTAGE_MS + 5000 }

let redis: RedisServer
let proxy: TcpProxy
let scene: DenylistScene
beforeAll(async () => {
  redis = await startRedis({ config: { appendonly: 'yes', appendfsync: 'always' } })
  const place = { host: redis.host, port: redis.port }
  proxy = await startTcpProxy(place)
  scene = await openDenylistScene(place, [place, place, { host: proxy.host, port: proxy.port }])
})
afterAll(async () => {
  await scene.close()
  await proxy.close()
  await redis.stop()
})
afterEach(() => proxy.restore())

/** Traffic with three tokens, of which the first is denied. */
async function hold() {
  const { receivers, desk } = scene
  await scene.untilState('fresh')
  const held = newTarget(scene, 'key')
  const late = newTarget(scene, 'caller')
  const control = controlToken(scene)
  await desk.deny(held.entry)
  const traffic = scene.startTraffic([held.token, late.token, control])
  onTestFinished(traffic.stop)
  await traffic.settled('refused', { token: held.token, receivers })
  await traffic.settled('accepted', { token: late.token, receivers })
  const began = performance.now()
  const expectUndisturbed = (): void => {
    for (const outcome of ['refused', 'unknown', 'other'] as const) {
      const question = { token: control, receivers, since: began }
      expect(traffic.has(outcome, question), `the control was ${outcome}`).toBe(false)
    }
  }
  return { held, late, traffic, began, expectUndisturbed }
}

/** The receivers of the scene that do not apply a version, as the desk knows them. */
async function namesBelow(version: number): Promise<string[]> {
  const own = scene.receivers.map(({ name }) => name)
  const known = (await scene.desk.receivers()).filter(({ name }) => own.includes(name))
  return known.filter((each) => each.version < version).map(({ name }) => name)
}

/** Denies now; milliseconds until all receivers apply it. */
async function denied({ late, traffic }: Awaited<ReturnType<typeof hold>>): Promise<number> {
  const { desk, receivers } = scene
  await desk.deny(late.entry, PATIENTLY)
  const since = performance.now()
  await sleep(APPLIED_WITHIN_MS)
  await traffic.settled('refused', { token: late.token, receivers })
  return traffic.lastAcceptance({ token: late.token, receivers, since })
}

describe.each(['refused', 'accepted and silent for good'] as const)(
  'one of three: %s',
  (outage) => {
    test('the others go on within a second, and it does when it is back', async () => {
      const holding = await hold()
      const { held, late, traffic, began, expectUndisturbed } = holding
      const { desk, receivers } = scene
      const cutOff = receivers[2] as DenylistReceiver
      const others = receivers.slice(0, 2)
      await proxy.fail(outage)
      const failedAt = performance.now()
      await sleep(500)
      const { version } = await desk.deny(late.entry)
      const deniedAt = performance.now()
      await until('the others report it', async () => {
        const known = await desk.receivers()
        const applying = known.filter((each) => each.version >= version).map(({ name }) => name)
        return others.every(({ name }) => applying.includes(name))
      })
      expect(await namesBelow(version)).toEqual([cutOff.name])
      await scene.untilState('stale', [cutOff])
      await sleep(Math.max(0, OUTAGE_MS - (performance.now() - failedAt)))
      const ofOthers = { token: late.token, receivers: others, since: deniedAt }
      report(`${outage}: the others`, [traffic.lastAcceptance(ofOthers)])
      expect(traffic.lastAcceptance(ofOthers)).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
      // It has only its last list, of which nothing is forgotten.
      await traffic.settled('accepted', { token: late.token, receivers: [cutOff] })
      expect(traffic.has('accepted', { token: held.token, receivers, since: began })).toBe(false)

      const allowed = await desk.allow(targetOf(held.entry))
      await proxy.restore()
      const since = performance.now()
      await traffic.settled('refused', { token: late.token, receivers: [cutOff] })
      await traffic.settled('accepted', { token: held.token, receivers: [cutOff] })
      const ofCutOff = { receivers: [cutOff], since }
      const last = traffic.lastAcceptance({ ...ofCutOff, token: late.token })
      const first = traffic.firstAcceptance({ ...ofCutOff, token: held.token })
      report(`${outage}: the one that was cut off, deny and allow`, [last, first])
      expect(Math.max(last, first)).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
      await until('it reports', async () => (await namesBelow(allowed.version)).length === 0)
      expectUndisturbed()
      await desk.allow(targetOf(late.entry))
    })
  },
)

describe('the Redis of all three', () => {
  test('starts after them: 503 until it does, then the list within a second', async () => {
    const { token, entry } = newTarget(scene, 'token')
    const control = controlToken(scene)
    await scene.desk.deny(entry)
    await redis.kill()
    await scene.relaunch()
    const { receivers } = scene
    const traffic = scene.startTraffic([control, token])
    onTestFinished(traffic.stop)
    const began = performance.now()
    await traffic.settled('unknown', { token: control, receivers })
    await sleep(OUTAGE_MS / 3)
    expect(traffic.has('accepted', { token: control, receivers, since: began })).toBe(false)
    await redis.restart()
    const since = performance.now()
    await traffic.settled('accepted', { token: control, receivers })
    await traffic.settled('refused', { token, receivers })
    const ms = traffic.firstAcceptance({ token: control, receivers, since })
    report('started after the receivers', [ms])
    expect(ms).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
    expect(traffic.has('accepted', { token, receivers, since: began })).toBe(false)
  })

  test('is paused and resumed', async () => {
    const holding = await hold()
    redis.pause()
    await scene.untilState('stale')
    await sleep(OUTAGE_MS / 2)
    redis.resume()
    const ms = await denied(holding)
    report('paused', [ms])
    expect(ms).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
    await expectHeld(holding)
  })

  test('is killed and comes back with its data', async () => {
    const holding = await hold()
    await redis.kill()
    await scene.untilState('stale')
    await sleep(OUTAGE_MS / 2)
    await redis.restart()
    const ms = await denied(holding)
    report('killed', [ms])
    expect(ms).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
    await expectHeld(holding)
    for (const receiver of scene.receivers) {
      expect(await receiver.health()).not.toHaveProperty('regressed')
    }
  })

  test('is killed and comes back without its data', async () => {
    const holding = await hold()
    await redis.kill()
    await scene.untilState('stale')
    await redis.restart({ keepData: false })
    const ms = await denied(holding)
    report('killed without its data', [ms])
    expect(ms).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
    for (const receiver of scene.receivers) {
      expect(await receiver.health()).toMatchObject({ regressed: true })
    }
    await expectHeld(holding)
  })

  /** The held entry has outlasted it, ends by `allow` alone, and nobody else has noticed. */
  async function expectHeld({ held, late, traffic, began, expectUndisturbed }: Holding) {
    const { desk, receivers } = scene
    const { token } = held
    expect(traffic.has('accepted', { token, receivers, since: began })).toBe(false)
    await desk.allow(targetOf(held.entry))
    const since = performance.now()
    await traffic.settled('accepted', { token, receivers })
    const ms = traffic.firstAcceptance({ token, receivers, since })
    report('then allowed', [ms])
    expect(ms).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
    expectUndisturbed()
    await desk.allow(targetOf(late.entry))
  }
})

type Holding = Awaited<ReturnType<typeof hold>>
