import { Redis } from 'ioredis'
import { expect, it, type TestContext } from 'vitest'
import { slotOf } from '../../src/stores/redis/connection/hash-slot.js'
import type { RedisServer } from '../support/redis/redis.js'
import { startCluster } from '../support/redis/redis-cluster.js'
import { startSentinel } from '../support/redis/redis-sentinel.js'
import { until } from '../support/until.js'
import { APPLIED_WITHIN_MS, report, WRITE_PATIENCE } from './denylist-figures.js'
import { holdDenied } from './denylist-holding.js'
import { openDenylistScene, targetOf } from './denylist-scene.js'
import type { ServerPlace } from './denylist-server.js'

const SLOTS = 16_384
/**
 * Counted from a write while receivers still look for the new master, which sentinels and nodes tell
 * one another by and by: who asks one that does not know yet is cut off until it asks the next.
 */
const FOUND_AND_APPLIED_WITHIN_MS = 2 * APPLIED_WITHIN_MS

/** Ends with the test; what began last ends first. */
type Closing = Pick<TestContext, 'onTestFinished'>

interface Failover {
  readonly place: ServerPlace
  /** Resolves when somebody who takes the master's place has what it had. */
  copied(): Promise<void>
  killMaster(): Promise<void>
}

/** The list is held through the failover, and the next one within a second of its being written. */
async function expectHeldThrough(
  what: string,
  { place, copied, killMaster }: Failover,
  { onTestFinished }: Closing,
) {
  const scene = await openDenylistScene(place)
  onTestFinished(scene.close)
  await scene.launch()
  const { desk, receivers } = scene
  const { held, late, traffic, began, expectUndisturbed } = await holdDenied(scene)
  await copied()
  await killMaster()
  await scene.untilState('stale')

  // A new master refuses writes until a replica follows it.
  await until('somebody takes writes', () =>
    desk.deny(late.entry).then(
      () => true,
      () => false,
    ),
  )
  const deniedAt = performance.now()
  await traffic.settled('refused', { token: late.token, receivers })
  const last = traffic.lastAcceptance({ token: late.token, receivers, since: deniedAt })
  expect(traffic.has('accepted', { token: held.token, receivers, since: began })).toBe(false)
  await scene.untilState('fresh')

  await desk.allow(targetOf(held.entry), WRITE_PATIENCE)
  const allowedAt = performance.now()
  await traffic.settled('accepted', { token: held.token, receivers })
  const first = traffic.firstAcceptance({ token: held.token, receivers, since: allowedAt })
  report(`${what}: deny and allow`, [last, first])
  expect(last).toBeLessThanOrEqual(FOUND_AND_APPLIED_WITHIN_MS)
  expect(first).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
  expectUndisturbed()
  for (const receiver of receivers) expect(await receiver.health()).not.toHaveProperty('regressed')
}

/** Clusters send whoever asks a replica to its master, unless it says that it only reads. */
async function hasEntry({ port }: RedisServer): Promise<boolean> {
  const client = new Redis({ port, readOnly: true })
  try {
    return (await client.hlen('esa:{denylist}:entries')) === 1
  } finally {
    client.disconnect()
  }
}

const untilAllHave = (servers: readonly RedisServer[]): Promise<void> =>
  until('the replicas have the entry', async () =>
    (await Promise.all(servers.map(hasEntry))).every(Boolean),
  )

it.concurrent('behind sentinels, the master is killed', async (context) => {
  const group = await startSentinel()
  context.onTestFinished(group.stop)
  const servers = [group.primary, ...group.replicas]
  await Promise.all(
    servers.map((server) => server.command('CONFIG', 'SET', 'min-replicas-to-write', '1')),
  )
  const failover = {
    place: { name: group.name, sentinels: group.sentinels },
    copied: () => untilAllHave(group.replicas),
    killMaster: group.killPrimary,
  }
  await expectHeldThrough('sentinels', failover, context)
})

it.concurrent('in a cluster, the master of the list is killed', async (context) => {
  const cluster = await startCluster()
  context.onTestFinished(cluster.stop)
  const index = Math.floor((slotOf('{denylist}') * cluster.masters.length) / SLOTS)
  const failover = {
    place: { nodes: cluster.startupNodes },
    copied: () => untilAllHave(cluster.replicas.slice(index, index + 1)),
    killMaster: () => (cluster.masters[index] as RedisServer).kill(),
  }
  await expectHeldThrough('cluster', failover, context)
})
