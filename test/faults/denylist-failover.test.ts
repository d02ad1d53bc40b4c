import { expect, it, onTestFinished } from 'vitest'
import type { RedisServer } from '../support/redis/redis.js'
import { startSentinel } from '../support/redis/redis-sentinel.js'
import { until } from '../support/until.js'
import { APPLIED_WITHIN_MS, report, WRITE_PATIENCE } from './denylist-figures.js'
import { holdDenied } from './denylist-holding.js'
import { openDenylistScene, targetOf } from './denylist-scene.js'

/**
 * Counted from a write while receivers still look for the new master, which sentinels tell one another
 * by and by: who asks one that does not know yet is cut off until it asks the next.
 */
const FOUND_AND_APPLIED_WITHIN_MS = 2 * APPLIED_WITHIN_MS

const hasEntry = async (server: RedisServer): Promise<boolean> =>
  (await server.command('HLEN', 'esa:{denylist}:entries')) === '1'

it('the list is held when the master behind sentinels is killed, and the next entry applies within a second', async () => {
  const group = await startSentinel()
  onTestFinished(group.stop)
  const servers = [group.primary, ...group.replicas]
  await Promise.all(
    servers.map((server) => server.command('CONFIG', 'SET', 'min-replicas-to-write', '1')),
  )
  const scene = await openDenylistScene({ name: group.name, sentinels: group.sentinels })
  onTestFinished(scene.close)
  await scene.launch()
  const { desk, receivers } = scene
  const { held, late, traffic, began, expectUndisturbed } = await holdDenied(scene)
  await until('the replicas have the entry', async () =>
    (await Promise.all(group.replicas.map(hasEntry))).every(Boolean),
  )
  await group.killPrimary()
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
  report('sentinels: deny and allow', [last, first])
  expect(last).toBeLessThanOrEqual(FOUND_AND_APPLIED_WITHIN_MS)
  expect(first).toBeLessThanOrEqual(APPLIED_WITHIN_MS)
  expectUndisturbed()
  for (const receiver of receivers) expect(await receiver.health()).not.toHaveProperty('regressed')
})
