import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from 'express-service-auth'
import { type RedisClientLike, redisStore } from 'express-service-auth/redis'
import { beforeAll, describe, expect, it } from 'vitest'
import { OUTAGES, type Outage, startTcpProxy } from '../../../support/network/tcp-proxy.js'
import { type RedisServer, startRedis, startServer } from '../../../support/redis/redis.js'
import { endClient } from '../../../support/redis/redis-clients.js'
import { until } from '../../../support/until.js'
import { begin, CHOSEN_LIBRARIES, MAJORS, requestFor } from '../kit.js'

/** Below the connect timeout of ioredis (10 s), with room for a busy machine: all recover at the same time. */
const BACK_WITHIN_MS = 5000
const PAUSE_MS = 20
/** In a row, so that a success by chance is none. */
const SUCCESSES = 5
const TIMEOUT_MS = 60_000
const DURATIONS = [0.2, 1, 5]

type Connect = (port: number) => RedisClientLike | Promise<RedisClientLike>

/** What a client sends at first has to be answered too. */
const NAMED = { username: 'app', password: 'secret-of-the-app', name: 'orders' }

interface Case {
  readonly client: string
  readonly connect: Connect
  readonly outage: Outage
  readonly seconds: number
}

const casesOf = (clients: readonly [string, Connect][], durations: readonly number[]): Case[] =>
  clients.flatMap(([client, connect]) =>
    OUTAGES.flatMap((outage) => durations.map((seconds) => ({ client, connect, outage, seconds }))),
  )

async function serves(store: Store): Promise<boolean> {
  const run = await begin(store, requestFor({ retentionMs: 1000 }))
  return store.settle(run, { type: 'finished', result: Buffer.from('result') })
}

/** How many milliseconds after the end of its outage a store serves again. */
async function recovery({ outage, seconds, connect }: Case, server: RedisServer): Promise<number> {
  const proxy = await startTcpProxy(server)
  // A node of a cluster tells its clients where it is.
  await server.command('CONFIG', 'SET', 'cluster-announce-port', String(proxy.port))
  const users = await connect(proxy.port)
  const store = redisStore(users)
  const tries = (): Promise<boolean> => serves(store).catch(() => false)
  const servesInARow = async (): Promise<boolean> => {
    for (let count = 0; count < SUCCESSES; count++) if (!(await tries())) return false
    return true
  }
  try {
    await until('the store serves', servesInARow)
    await proxy.fail(outage)
    const endsAt = performance.now() + seconds * 1000
    while (performance.now() < endsAt) {
      await Promise.race([tries(), sleep(endsAt - performance.now())])
      await sleep(PAUSE_MS)
    }
    await proxy.restore()
    const restoredAt = performance.now()
    await until('the store serves again', servesInARow)
    return performance.now() - restoredAt
  } finally {
    store.close()
    endClient(users)
    await proxy.close()
  }
}

/** All at once: most of their time is waiting. */
function testRecoveries(cases: readonly Case[], recover: (each: Case) => Promise<number>) {
  let recoveries: Map<Case, Promise<number>>
  beforeAll(() => {
    recoveries = new Map(cases.map((each) => [each, recover(each)]))
    for (const each of recoveries.values()) each.catch(() => {})
  })

  it.each(cases)(
    'serves again after $seconds s $outage, through $client',
    async (each) => {
      expect(await recoveries.get(each)).toBeLessThan(BACK_WITHIN_MS)
    },
    TIMEOUT_MS,
  )
  return async (): Promise<number[]> => {
    const all = await Promise.all(recoveries.values())
    return all.toSorted((one, other) => one - other)
  }
}

/** Whatever the outage is: half of them at least, so that a busy machine may hold up some. */
const MOSTLY_WITHIN_MS = 1000

describe('a store whose server was unreachable', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
    await server.command('ACL', 'SETUSER', 'app', 'on', `>${NAMED.password}`, '~*', '+@all')
    return () => server.stop()
  })
  const clients = CHOSEN_LIBRARIES.map(({ library, connect }): [string, Connect] => [
    library,
    (port) => connect({ port, ...NAMED }),
  ])
  const allRecoveries = testRecoveries(casesOf(clients, DURATIONS), (each) =>
    recovery(each, server),
  )

  it('as a rule serves again within a second', async () => {
    const took = await allRecoveries()
    expect(took[took.length >> 1]).toBeLessThan(MOSTLY_WITHIN_MS)
  })
})

describe('a store whose cluster was unreachable', () => {
  const clients = CHOSEN_LIBRARIES.map(({ library, connectCluster }): [string, Connect] => [
    library,
    (port) => connectCluster([{ host: '127.0.0.1', port }]),
  ])
  testRecoveries(casesOf(clients, [1]), async (each) => {
    const config = { 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' }
    const node = await startRedis({ config })
    try {
      await node.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
      return await recovery(each, node)
    } finally {
      await node.stop()
    }
  })
})

describe('a store whose server behind a sentinel was unreachable', () => {
  let server: RedisServer
  let sentinel: RedisServer
  beforeAll(async () => {
    server = await startRedis()
    sentinel = await startServer({
      extraArguments: ['--sentinel'],
      readyLine: 'Sentinel ID is',
      config: {},
    })
    return () => Promise.all([sentinel.stop(), server.stop()])
  })

  const clients = MAJORS.map(({ major, RedisOfRelease }): [string, Connect] => [
    major,
    async (port) => {
      // By default a server counts as down after 30 s, longer than any outage here.
      const name = `master-${port}`
      await sentinel.command('SENTINEL', 'MONITOR', name, server.host, String(port), '1')
      const sentinels = [{ host: sentinel.host, port: sentinel.port }]
      return new RedisOfRelease({ sentinels, name, lazyConnect: true })
    },
  ])
  testRecoveries(casesOf(clients, [1]), (each) => recovery(each, server))
})
