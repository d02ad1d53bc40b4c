import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import type { RedisServer } from '../../../support/redis/redis.js'
import { until } from '../../../support/until.js'
import { ownRedis, proxyOf, timed } from '../kit.js'
import { entryOf, ISSUER, openDenylist, PATIENTLY } from './denylist-kit.js'

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
