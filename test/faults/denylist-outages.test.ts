import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { startTcpProxy, type TcpProxy } from '../support/network/tcp-proxy.js'
import { type RedisServer, startRedis } from '../support/redis/redis.js'
import { until } from '../support/until.js'
import { APPLIED_WITHIN_MS, POLL_MS, report, WRITE_PATIENCE } from './denylist-figures.js'
import {
  controlToken,
  type DenylistScene,
  newTarget,
  openDenylistScene,
  type Target,
  targetOf,
} from './denylist-scene.js'
import type { Traffic } from './denylist-traffic.js'

/** An outage lasts at least until receivers are stale, 1.5 s; `DENYLIST_OUTAGE_MS` makes it longer. */
const OUTAGE_MS = Number(process.env['DENYLIST_OUTAGE_MS'] ?? 1500)
/** The desk asks for as long as an outage takes. */
const PATIENTLY = { timeoutMs: OUTAGE_MS + 5000 }

let redis: RedisServer
let proxies: readonly TcpProxy[]
/** Two receivers that reach Redis at once, and one behind each proxy. */
let scene: DenylistScene
beforeAll(async () => {
  redis = await startRedis({ config: { appendonly: 'yes', appendfsync: 'always' } })
  const place = { host: redis.host, port: redis.port }
  proxies = await Promise.all([startTcpProxy(place), startTcpProxy(place)])
  const proxied = proxies.map(({ host, port }) => ({ host, port }))
  scene = await openDenylistScene(place, [place, place, ...proxied])
})
afterAll(async () => {
  await scene.close()
  await Promise.all(proxies.map((proxy) => proxy.close()))
  await redis.stop()
})

/** Traffic with three tokens: one that is denied, one that will be, and one that nobody touches. */
interface Holding {
  readonly held: Target
  readonly late: Target
  readonly traffic: Traffic
  /** Of `performance.now`, when all receivers held the first. */
  readonly began: number
  /** The third one was accepted all the time. */
  expectUndisturbed(): void
}

/** Denies a key, and waits until all receivers hold that. The traffic ends with the test. */
async function hold(): Promise<Holding> {
  const { receivers, desk } = scene
  await scene.untilState('fresh')
  const held = newTarget(scene, 'key')
  const late = newTarget(scene, 'caller')
  const control = controlToken(scene)
  await desk.deny(held.entry, WRITE_PATIENCE)
  const traffic = scene.startTraffic([held.token, late.token, control])
  onTestFinished(traffic.stop)
  await traffic.settled('refused', { token: held.token, receivers })
  await traffic.settled('accepted', { token: late.token, receivers })
  const began = performance.now()
  return {
    held,
    late,
    traffic,
    began,
    expectUndisturbed() {
      for (const outcome of ['refused', 'unknown', 'other'] as const) {
        const question = { token: control, receivers, since: began }
        expect(traffic.has(outcome, question), `the control was ${outcome}`).toBe(false)
      }
    },
  }
}

const untilOver = (failedAt: number): Promise<void> =>
  sleep(Math.max(0, OUTAGE_MS - (performance.now() - failedAt)))

/** The receivers of the scene that do not apply a version, as the desk knows them. */
async function namesBelow(version: number): Promise<string[]> {
  const own = scene.receivers.map(({ name }) => name)
  const known = (await scene.desk.receivers()).filter(({ name }) => own.includes(name))
  return known.filter((each) => each.version < version).map(({ name }) => name)
}

/** Denies now; milliseconds until all receivers apply it. */
async function denied({ late, traffic }: Holding): Promise<number> {
  const { desk, receivers } = scene
  await desk.deny(late.entry, PATIENTLY)
  const since = performance.now()
  await traffic.settled('refused', { token: late.token, receivers })
  await sleep(POLL_MS)
  return traffic.lastAcceptance({ token: late.token, receivers, since })
}

// The first one launches the receivers, and the others go on with them.
it('Redis starts after them: 503 until it does, then the list within a second', async () => {
  const { token, entry } = newTarget(scene, 'token')
  const control = controlToken(scene)
  await scene.desk.deny(entry, WRITE_PATIENCE)
  await redis.kill()
  await scene.launch()
  const { receivers } = scene
  const traffic = scene.startTraffic([control, token])
  onTestFinished(traffic.stop)
  const began = performance.now()
  await traffic.settled('unknown', { token: control, receivers })
  await untilOver(began)
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

it('two are cut off, one refused and one in silence: the others go on within a second, and they do when they are back', async () => {
  const holding = await hold()
  const { held, late, traffic, began, expectUndisturbed } = holding
  const { desk } = scene
  const others = scene.receivers.slice(0, 2)
  const cutOff = scene.receivers.slice(2)
  await Promise.all([proxies[0]?.fail('refused'), proxies[1]?.fail('accepted and silent for good')])
  const failedAt = performance.now()
  await sleep(POLL_MS)
  const { version } = await desk.deny(late.entry, WRITE_PATIENCE)
  const deniedAt = performance.now()
  await until('the others report it', async () => {
    const known = await desk.receivers()
    const applying = known.filter((each) => each.version >= version).map(({ name }) => name)
    return others.every(({ name }) => applying.includes(name))
  })
  expect((await namesBelow(version)).toSorted()).toEqual(cutOff.map(({ name }) => name))
  await scene.untilState('stale', cutOff)
  await untilOver(failedAt)
  const ofOthers = { token: late.token, receivers: others, since: deniedAt }
  report('the others', [traffic.lastAcceptance(ofOthers)])
  expect(traffic.lastAcceptance(ofOthers)).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
  // They have only their last list, of which nothing is forgotten.
  await traffic.settled('accepted', { token: late.token, receivers: cutOff })
  expect(
    traffic.has('accepted', { token: held.token, receivers: scene.receivers, since: began }),
  ).toBe(false)

  const allowed = await desk.allow(targetOf(held.entry), WRITE_PATIENCE)
  await Promise.all(proxies.map((proxy) => proxy.restore()))
  const since = performance.now()
  await traffic.settled('refused', { token: late.token, receivers: cutOff })
  await traffic.settled('accepted', { token: held.token, receivers: cutOff })
  const figures = cutOff.flatMap((receiver) => {
    const ofOne = { receivers: [receiver], since }
    return [
      traffic.lastAcceptance({ ...ofOne, token: late.token }),
      traffic.firstAcceptance({ ...ofOne, token: held.token }),
    ]
  })
  report('refused, then silent: deny and allow', figures)
  for (const ms of figures) expect(ms).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
  await until('they report', async () => (await namesBelow(allowed.version)).length === 0)
  expectUndisturbed()
  await desk.allow(targetOf(late.entry), WRITE_PATIENCE)
})

it('the Redis of all is killed and comes back with its data', async () => {
  const holding = await hold()
  const { held, late, traffic, began, expectUndisturbed } = holding
  const { desk, receivers } = scene
  await redis.kill()
  const failedAt = performance.now()
  await scene.untilState('stale')
  await untilOver(failedAt)
  await redis.restart()
  const appliedMs = await denied(holding)
  report('killed', [appliedMs])
  expect(appliedMs).toBeLessThanOrEqual(APPLIED_WITHIN_MS)

  // The held entry has outlasted it, ends by `allow` alone, and nobody else has noticed.
  const { token } = held
  expect(traffic.has('accepted', { token, receivers, since: began })).toBe(false)
  await desk.allow(targetOf(held.entry), WRITE_PATIENCE)
  const since = performance.now()
  await traffic.settled('accepted', { token, receivers })
  const allowedMs = traffic.firstAcceptance({ token, receivers, since })
  report('then allowed', [allowedMs])
  expect(allowedMs).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
  expectUndisturbed()
  for (const receiver of receivers) expect(await receiver.health()).not.toHaveProperty('regressed')
  await desk.allow(targetOf(late.entry), WRITE_PATIENCE)
})
