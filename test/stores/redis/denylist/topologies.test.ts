import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisDenylist } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RedisServer } from '../../../support/redis/redis.js'
import { startCluster } from '../../../support/redis/redis-cluster.js'
import { isPrimary } from '../../../support/redis/redis-replica.js'
import { startSentinel } from '../../../support/redis/redis-sentinel.js'
import { succeeds, until } from '../../../support/until.js'
import { CHOSEN_LIBRARIES, MAJORS, started } from '../kit.js'
import {
  denylistOn,
  entryOf,
  ISSUER,
  PATIENTLY,
  refuses,
  untilAccepted,
  untilRefused,
  untilState,
} from './denylist-kit.js'

const BILLING = entryOf({ value: 'billing' })
const ALLOW_ORDERS = { issuer: ISSUER, kind: 'caller', value: 'orders' } as const

/** Writes through a desk that looks for the new master by itself. */
const untilDenied = (desk: RedisDenylist, entry = BILLING): Promise<void> =>
  until('somebody takes writes', () => succeeds(desk.deny(entry)))

/** Whether a server has this many entries. */
const has = async (server: RedisServer, count: number): Promise<boolean> =>
  (await server.command('HLEN', 'esa:{denylist}:entries')) === String(count)

describe.each(MAJORS)('behind sentinels, through $major', ({ RedisOfRelease }) => {
  async function open() {
    const group = await started(startSentinel())
    const { name, sentinels } = group
    const connect = (): Redis =>
      new RedisOfRelease({ sentinels: [...sentinels], name, role: 'slave', lazyConnect: true })
    return { group, receiver: denylistOn(connect()), desk: denylistOn(connect()) }
  }

  it('a failover that loses the last deny takes nothing from who holds it', async () => {
    const { group, receiver, desk } = await open()
    await desk.deny(entryOf({ kind: 'key', value: 'd-1' }), PATIENTLY)
    await until('the replicas have it', async () => {
      return (await Promise.all(group.replicas.map((each) => has(each, 1)))).every(Boolean)
    })
    await Promise.all(group.replicas.map((each) => each.command('REPLICAOF', '127.0.0.1', '1')))
    await receiver.ready()
    await desk.deny(entryOf(), PATIENTLY)
    await untilRefused(receiver, 'orders')
    await group.killPrimary()
    await untilState(receiver, 'stale')
    expect(refuses(receiver, 'orders')).toBe(true)
    await untilDenied(desk)
    const writtenAt = performance.now()
    await untilRefused(receiver, 'billing')
    expect(performance.now() - writtenAt).toBeLessThan(5000)
    expect(receiver.health()).toMatchObject({ state: 'fresh', entries: 3, regressed: true })
    expect(refuses(receiver, 'orders')).toBe(true)
    expect(await desk.allow(ALLOW_ORDERS, PATIENTLY)).toMatchObject({ wasListed: false })
    await untilAccepted(receiver, 'orders')
    expect(receiver.lists(ISSUER)?.keys.has('d-1')).toBe(true)
  }, 60_000)

  it('a sentinel that hangs does not keep it from the master', async () => {
    const { group, desk } = await open()
    const [first] = group.sentinels
    const { name, sentinels } = group
    await desk.deny(entryOf(), PATIENTLY)
    const hung = await fetchPid(first?.port as number)
    process.kill(hung, 'SIGSTOP')
    onTestFinished(() => void process.kill(hung, 'SIGCONT'))
    const late = denylistOn(
      new RedisOfRelease({ sentinels: [...sentinels], name, lazyConnect: true }),
    )
    await late.ready()
    expect(refuses(late, 'orders')).toBe(true)
  }, 60_000)

  it('an old master that the sentinels have given up is left, while it still answers', async () => {
    const { group, receiver, desk } = await open()
    await desk.deny(entryOf(), PATIENTLY)
    await receiver.ready()
    const sentinel = new Redis({ ...group.sentinels[0] })
    onTestFinished(() => sentinel.disconnect())
    await sleep(500)
    await sentinel.call('SENTINEL', 'FAILOVER', group.name)
    await until('another is the primary', async () => {
      return (await Promise.all(group.replicas.map(isPrimary))).some(Boolean)
    })
    await untilDenied(desk)
    await untilRefused(receiver, 'billing')
    await untilState(receiver, 'fresh')
  }, 60_000)
})

/** The process of a server that sends its id. */
async function fetchPid(port: number): Promise<number> {
  const client = new Redis(port)
  try {
    return Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1])
  } finally {
    client.disconnect()
  }
}

describe.each(CHOSEN_LIBRARIES)('in a cluster, through $library', ({ library, connectCluster }) => {
  it('it goes on with the replica of a master that was killed', async () => {
    const cluster = await started(startCluster())
    const connect = (nodes = cluster.startupNodes) => connectCluster(nodes)
    const slot = Number(await cluster.masters[0]?.command('CLUSTER', 'KEYSLOT', '{denylist}'))
    const index = Math.floor((slot * 3) / 16_384)
    const master = cluster.masters[index] as RedisServer
    const replica = cluster.replicas[index] as RedisServer
    // One that knows only the node that will be gone. node-redis 5 does not ask the others then.
    const known = { host: master.host, port: master.port }
    const receiver = denylistOn(connect(library === 'node-redis 5' ? undefined : [known]))
    const other = denylistOn(connect())
    const desk = denylistOn(connect())
    await desk.deny(entryOf(), PATIENTLY)
    await Promise.all([receiver.ready(), other.ready()])
    expect(refuses(receiver, 'orders')).toBe(true)
    await until('the replica has it', () => replicaHas(replica))
    await until('both have reported', async () => (await desk.receivers()).length === 2)
    await master.kill()
    await untilState(receiver, 'stale')
    expect(refuses(receiver, 'orders')).toBe(true)
    await untilDenied(desk)
    const writtenAt = performance.now()
    await Promise.all([receiver, other].map((each) => untilRefused(each, 'billing')))
    expect(performance.now() - writtenAt).toBeLessThan(5000)
    expect(refuses(receiver, 'orders')).toBe(true)
    expect(receiver.health()).not.toHaveProperty('regressed')
    await untilState(receiver, 'fresh')
  }, 60_000)
})

/** Clusters send whoever asks a replica to its master, unless it says that it only reads. */
async function replicaHas(replica: RedisServer): Promise<boolean> {
  const client = new Redis({ port: replica.port, readOnly: true })
  try {
    return (await client.hlen('esa:{denylist}:entries')) === 1
  } finally {
    client.disconnect()
  }
}
