import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from 'express-service-auth'
import { redisStore } from 'express-service-auth/redis'
import type { Cluster, Redis } from 'ioredis'
import { beforeAll, describe, expect, it } from 'vitest'
import { OUTAGES, type Outage, startTcpProxy } from '../../../support/network/tcp-proxy.js'
import { type RedisServer, startRedis } from '../../../support/redis/redis.js'
import { until } from '../../../support/until.js'
import { begin, MAJORS, requestFor } from '../kit.js'

/** Below the connect timeout of ioredis (10 s), with room for a busy machine: all recover at the same time. */
const BACK_WITHIN_MS = 5000
const PAUSE_MS = 20
/** In a row, so that a success by chance is none. */
const SUCCESSES = 5
const TIMEOUT_MS = 60_000

type Connect = (port: number) => Redis | Cluster

/** What ioredis sends at first has to be answered too. */
const NAMED = { username: 'app', password: 'secret-of-the-app', connectionName: 'orders' }

const clientsOf = (
  kind: string,
  connect: (major: (typeof MAJORS)[number], port: number) => Redis | Cluster,
): Record<string, Connect> =>
  Object.fromEntries(
    MAJORS.map((each) => [`${kind} of ${each.major}`, (port) => connect(each, port)]),
  )

const SERVERS = clientsOf(
  'a client',
  ({ RedisOfRelease }, port) => new RedisOfRelease({ port, lazyConnect: true }),
)
const NAMED_SERVERS = clientsOf(
  'a client with a password and a name',
  ({ RedisOfRelease }, port) => new RedisOfRelease({ port, lazyConnect: true, ...NAMED }),
)
const CLUSTERS = clientsOf(
  'a client of a cluster',
  ({ ClusterOfRelease }, port) =>
    new ClusterOfRelease([{ host: '127.0.0.1', port }], { lazyConnect: true }),
)

const WORK: Record<string, (store: Store) => Promise<boolean>> = {
  tokens: (store) => store.consume(randomUUID(), 1000),
  async writes(store) {
    const run = await begin(store, requestFor({ retentionMs: 1000 }))
    return store.settle(run, { type: 'finished', result: Buffer.from('result') })
  },
}

interface Case {
  readonly client: string
  readonly outage: Outage
  readonly seconds: number
  readonly work: string
}

function casesOf(clients: object, durations: readonly number[]): Case[] {
  return Object.keys(clients).flatMap((client) =>
    OUTAGES.flatMap((outage) =>
      durations.flatMap((seconds) =>
        Object.keys(WORK).map((work) => ({ client, outage, seconds, work })),
      ),
    ),
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
  const users = connect(proxy.port)
  users.on('error', () => {})
  const store = redisStore(users)
  const serves = async (): Promise<boolean> =>
    (await WORK[work]?.(store).catch(() => false)) === true
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
    users.disconnect()
    await proxy.close()
  }
}

/** All at once: most of their time is waiting. */
function testRecoveries(cases: readonly Case[], recover: (each: Case) => Promise<number>): void {
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
}

describe('a store whose server was unreachable', () => {
  const clients = { ...SERVERS, ...NAMED_SERVERS }
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
    await server.command('ACL', 'SETUSER', 'app', 'on', `>${NAMED.password}`, '~*', '+@all')
    return () => server.stop()
  })
  testRecoveries([...casesOf(SERVERS, [0.2, 1, 5]), ...casesOf(NAMED_SERVERS, [1])], (each) =>
    recovery(each, server, clients[each.client] as Connect),
  )
})

describe('a store whose cluster was unreachable', () => {
  testRecoveries(casesOf(CLUSTERS, [1]), async (each) => {
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
