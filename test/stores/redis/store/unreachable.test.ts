import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from 'express-service-auth'
import { type RedisClientLike, redisStore } from 'express-service-auth/redis'
import { beforeAll, describe, expect, it } from 'vitest'
import { OUTAGES, type Outage, startTcpProxy } from '../../../support/network/tcp-proxy.js'
import { type RedisServer, startRedis, startServer } from '../../../support/redis/redis.js'
import { endClient, type RedisLibrary } from '../../../support/redis/redis-clients.js'
import { until } from '../../../support/until.js'
import { begin, CHOSEN_LIBRARIES, MAJORS, requestFor } from '../kit.js'

/** Below the connect timeout of ioredis (10 s), with room for a busy machine: all recover at the same time. */
const BACK_WITHIN_MS = 5000
const PAUSE_MS = 20
/** In a row, so that a success by chance is none. */
const SUCCESSES = 5
const TIMEOUT_MS = 60_000

type Connect = (port: number) => RedisClientLike | Promise<RedisClientLike>

/** What a client sends at first has to be answered too. */
const NAMED = { username: 'app', password: 'secret-of-the-app', name: 'orders' }

const clientsOf = (
  kind: string,
  connect: (library: RedisLibrary, port: number) => RedisClientLike,
): Record<string, Connect> =>
  Object.fromEntries(
    CHOSEN_LIBRARIES.map((each) => [`${kind} of ${each.library}`, (port) => connect(each, port)]),
  )

const SERVERS = clientsOf('a client', ({ connect }, port) => connect({ port }))
const NAMED_SERVERS = clientsOf('a client with a password and a name', ({ connect }, port) =>
  connect({ port, ...NAMED }),
)
const CLUSTERS = clientsOf('a client of a cluster', ({ connectCluster }, port) =>
  connectCluster([{ host: '127.0.0.1', port }]),
)
const WORK = {
  tokens: (store: Store): Promise<boolean> => store.consume(randomUUID(), 1000),
  async writes(store: Store): Promise<boolean> {
    const run = await begin(store, requestFor({ retentionMs: 1000 }))
    return store.settle(run, { type: 'finished', result: Buffer.from('result') })
  },
}

/** Where no library is chosen, clusters and sentinels have the outage of a second alone. */
const DURATIONS = process.env['REDIS_CLIENT'] === undefined ? [1] : [0.2, 1, 5]

interface Case {
  readonly client: string
  readonly outage: Outage
  readonly seconds: number
  readonly work: keyof typeof WORK
}

function casesOf(
  clients: object,
  durations: readonly number[],
  work: keyof typeof WORK = 'writes',
): Case[] {
  return Object.keys(clients).flatMap((client) =>
    OUTAGES.flatMap((outage) => durations.map((seconds) => ({ client, outage, seconds, work }))),
  )
}

/** How many milliseconds after the end of its outage a store serves again. */
async function recovery(
  { outage, seconds, work }: Case,
  server: RedisServer,
  connect: Connect,
): Promise<number> {
  const proxy = await startTcpProxy(server)
  // A node of a cluster tells its clients where it is.
  await server.command('CONFIG', 'SET', 'cluster-announce-port', String(proxy.port))
  const users = await connect(proxy.port)
  const store = redisStore(users)
  const serves = async (): Promise<boolean> => WORK[work](store).catch(() => false)
  const servesInARow = async (): Promise<boolean> => {
    for (let count = 0; count < SUCCESSES; count++) if (!(await serves())) return false
    return true
  }
  try {
    await until('the store serves', servesInARow)
    await proxy.fail(outage)
    const endsAt = performance.now() + seconds * 1000
    while (performance.now() < endsAt) {
      await Promise.race([serves(), sleep(endsAt - performance.now())])
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
    'serves $work again after $seconds s $outage, through $client',
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

async function startWithUser(): Promise<RedisServer> {
  const server = await startRedis()
  await server.command('ACL', 'SETUSER', 'app', 'on', `>${NAMED.password}`, '~*', '+@all')
  return server
}

/** Whatever the outage is: half of them at least, so that a busy machine may hold up some. */
const MOSTLY_WITHIN_MS = 1000

describe('a store whose server was unreachable', () => {
  const clients = { ...SERVERS, ...NAMED_SERVERS }
  let server: RedisServer
  beforeAll(async () => {
    server = await startWithUser()
    return () => server.stop()
  })
  const allRecoveries = testRecoveries(
    [...casesOf(SERVERS, [0.2, 1, 5]), ...casesOf(NAMED_SERVERS, [1], 'tokens')],
    (each) => recovery(each, server, clients[each.client] as Connect),
  )

  it('as a rule serves again within a second', async () => {
    const took = await allRecoveries()
    expect(took[took.length >> 1]).toBeLessThan(MOSTLY_WITHIN_MS)
  })
})

describe('a store whose cluster was unreachable', () => {
  testRecoveries(casesOf(CLUSTERS, DURATIONS), async (each) => {
    const config = { 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' }
    const node = await startRedis({ config })
    try {
      await node.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
      return await recovery(each, node, CLUSTERS[each.client] as Connect)
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

  const clients: Record<string, Connect> = Object.fromEntries(
    MAJORS.map(({ major, RedisOfRelease }) => [
      `a client of ${major}`,
      async (port: number) => {
        // By default a server counts as down after 30 s, longer than any outage here.
        const name = `master-${port}`
        await sentinel.command('SENTINEL', 'MONITOR', name, server.host, String(port), '1')
        const { host, port: sentinelPort } = sentinel
        const sentinels = [{ host, port: sentinelPort }]
        return new RedisOfRelease({ sentinels, name, lazyConnect: true })
      },
    ]),
  )
  testRecoveries(casesOf(clients, DURATIONS, 'tokens'), (each) =>
    recovery(each, server, clients[each.client] as Connect),
  )
})
