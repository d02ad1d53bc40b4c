import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisClientLike, RedisDenylist } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import type { RedisServer } from '../../../support/redis/redis.js'
import { LIBRARY } from '../../../support/redis/redis-clients.js'
import { knowSecret } from '../../../support/secret-search/index.js'
import { until } from '../../../support/until.js'
import { CHOSEN_LIBRARIES, ownRedis, proxyOf, timed } from '../kit.js'
import { denylistOn, entryOf, ISSUER, openDenylist, PATIENTLY } from './denylist-kit.js'

const ALLOW_ORDERS = { issuer: ISSUER, kind: 'caller', value: 'orders' } as const

it('a server cut off from its replicas is asked again until they are back, or the time is over', async () => {
  const server = await ownRedis({ 'min-replicas-to-write': '1' })
  const desk = openDenylist(server)
  // On a busy machine the time may be over while the last reply is under way.
  await until('the end comes between two calls', async () => {
    const { ms, error } = await timed(desk.deny(entryOf(), { timeoutMs: 600 }))
    expect(error).toMatchObject({ code: 'unavailable' })
    if (!/nothing was written: .*NOREPLICAS/.test(error?.message ?? '')) return false
    expect(error).toMatchObject({ mayBeWritten: false })
    expect(ms).toBeGreaterThan(400)
    return true
  })
  const denied = desk.deny(entryOf(), PATIENTLY)
  await sleep(200)
  await server.command('CONFIG', 'SET', 'min-replicas-to-write', '0')
  expect((await denied).version).toBeGreaterThan(0)
  expect(await desk.entries()).toHaveLength(1)
})

const optional = (password: string | undefined) => (password === undefined ? {} : { password })
const CLIENTS: [string, (port: number, password?: string) => RedisClientLike][] = [
  ...CHOSEN_LIBRARIES.map(({ library, connect }): (typeof CLIENTS)[number] => [
    library,
    (port, password) => connect({ port, ...optional(password) }),
  ]),
  [
    'a cluster',
    (port, password) => LIBRARY.connectCluster([{ host: '127.0.0.1', port }], optional(password)),
  ],
]

it.each(CLIENTS)(
  'a password that is wrong or missing is told as that, through %s',
  async (name, connect) => {
    const right = 'the-right-password-of-redis'
    const wrong = 'the-wrong-password-of-redis'
    for (const password of [right, wrong]) knowSecret('a Redis password', password)
    const cluster = { 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' }
    const server = await ownRedis({ requirepass: right, ...(name === 'a cluster' && cluster) })
    const expectTold = async (desk: RedisDenylist, fault: RegExp): Promise<void> => {
      const calls = [
        () => desk.deny(entryOf()),
        () => desk.allow(ALLOW_ORDERS),
        () => desk.entries(),
      ]
      for (const call of calls) {
        const error: unknown = await call().catch((thrown: unknown) => thrown)
        expect(error).toMatchObject({ code: 'unavailable', message: expect.stringMatching(fault) })
        expect((error as Error).message).not.toMatch(/not known|-password-of-redis/)
        expect(error).not.toHaveProperty('cause')
      }
      const error: unknown = await desk.ready().catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: 'unavailable' })
      expect(String(error)).not.toMatch(/-password-of-redis/)
      expect(error).not.toHaveProperty('cause')
    }
    // To a long question that ioredis 5 sends behind the password, Redis answers first.
    await expectTold(denylistOn(connect(server.port, wrong)), /WRONGPASS|NOAUTH/)
    await expectTold(denylistOn(connect(server.port)), /NOAUTH/)
  },
)

describe('marks', () => {
  const MOST = 10_000

  async function marked(second: number): Promise<RedisServer> {
    const server = await ownRedis()
    const redis = new Redis({ port: server.port })
    const rows = Array.from({ length: MOST }, (_, at) => [
      JSON.stringify([ISSUER, 'token', `t${at}`]),
      `${at + 1}|${second}|1|nonce`,
    ])
    await redis.hset('esa:{denylist}:marks', ...rows.flat())
    redis.disconnect()
    return server
  }

  it('are bounded: more are refused, and nothing changes', async () => {
    const desk = openDenylist(await marked(Math.floor(Date.now() / 1000)))
    await desk.deny(entryOf(), PATIENTLY)
    const { version } = await desk.version()
    const error = await desk.allow(ALLOW_ORDERS, PATIENTLY).catch((thrown) => thrown)
    expect(error).toBeInstanceOf(TypeError)
    expect(error.message).toBe('denylist target: 10000 others were allowed within the last 7 days')
    expect(await desk.version()).toMatchObject({ version })
    expect(await desk.entries(PATIENTLY)).toHaveLength(1)
    // It has a mark.
    await desk.allow({ issuer: ISSUER, kind: 'token', value: 't1' }, PATIENTLY)
  })
})

describe('a receiver that is closed while Redis is unreachable', () => {
  async function cutOff() {
    const server = await ownRedis()
    const proxy = await proxyOf(server)
    const desk = openDenylist(server)
    const receiver = openDenylist(proxy)
    await receiver.ready()
    await until('it is listed', async () => (await desk.receivers()).length === 1)
    await proxy.fail('refused')
    await until('it knows', async () => receiver.health().lastError !== undefined)
    receiver.close()
    return { proxy, desk }
  }

  it('takes itself off the list when that comes back within a second', async () => {
    const { proxy, desk } = await cutOff()
    await sleep(200)
    await proxy.restore()
    await until('it is off', async () => (await desk.receivers()).length === 0)
  })

  it('stays listed and opens nothing more when it does not', async () => {
    const { proxy, desk } = await cutOff()
    await sleep(1500)
    const { opened } = proxy
    await proxy.restore()
    await sleep(500)
    expect(proxy.opened).toBe(opened)
    expect(await desk.receivers()).toHaveLength(1)
  })
})
