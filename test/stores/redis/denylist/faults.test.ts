import { setTimeout as sleep } from 'node:timers/promises'
import {
  type RedisDenylist,
  type RedisDenylistOptions,
  redisDenylist,
} from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ALLOW } from '../../../../src/stores/redis/denylist/scripts.js'
import { OUTAGES, startTcpProxy } from '../../../support/network/tcp-proxy.js'
import { type RedisServer, startRedis } from '../../../support/redis/redis.js'
import type { RedisLibrary } from '../../../support/redis/redis-clients.js'
import { succeeds, until } from '../../../support/until.js'
import { CHOSEN_LIBRARIES, ownRedis, proxyOf, timed } from '../kit.js'
import {
  denylistOn,
  entryOf,
  hearDenylist,
  ISSUER,
  openDenylist,
  PATIENTLY,
  refuses,
  untilAccepted,
  untilRefused,
  untilState,
} from './denylist-kit.js'

/** Far above what it takes at most: a busy machine may stand still for a second. */
const APPLIED_WITHIN_MS = 5000
/** Without its limit it would not be over at all. */
const OVER_WITHIN_MS = 5000
const BILLING = entryOf({ value: 'billing' })
const ALLOW_ORDERS = { issuer: ISSUER, kind: 'caller', value: 'orders' } as const

/** A receiver that holds an entry. */
async function holding(
  address: { port: number },
  options: RedisDenylistOptions = {},
): Promise<{ receiver: RedisDenylist; desk: RedisDenylist }> {
  const receiver = openDenylist(address, options)
  const desk = openDenylist(address, options)
  // A server that has just been started may be late on a busy machine.
  await until('it is denied', () => succeeds(desk.deny(entryOf())))
  await receiver.ready()
  expect(refuses(receiver, 'orders')).toBe(true)
  return { receiver, desk }
}

const inSeconds = (seconds: number): number => Date.now() / 1000 + seconds

async function expectUnreadable(cold: RedisDenylist): Promise<void> {
  const { ms, error } = await timed(cold.ready())
  expect(error).toMatchObject({ name: 'ServiceAuthError', code: 'unavailable' })
  expect(ms).toBeLessThan(OVER_WITHIN_MS)
  expect(cold.health().state).toBe('cold')
  expect(cold.lists(ISSUER)).toBeUndefined()
}

const WAYS = [...OUTAGES, 'paused'] as const

/** What becomes of receivers while Redis goes away and comes back. */
async function expectHeldThrough(
  way: (typeof WAYS)[number],
  connect: RedisLibrary['connect'],
): Promise<void> {
  const server = await startRedis()
  const proxy = await startTcpProxy(server)
  const open = (options: RedisDenylistOptions = {}): RedisDenylist => {
    return redisDenylist(connect({ port: proxy.port }), options)
  }
  const desk = redisDenylist(connect({ port: server.port }))
  const receiver = open()
  const cold = open()
  const accepting = open({ whenUnknown: 'accept' })
  const end = inSeconds(6)
  try {
    await desk.deny(entryOf({ until: end }), PATIENTLY)
    await receiver.ready()
    await (way === 'paused' ? server.pause() : proxy.fail(way))
    await expectUnreadable(cold)
    await accepting.ready()
    expect(refuses(accepting, 'orders')).toBe(false)
    expect(accepting.health().state).toBe('cold')
    await untilState(receiver, 'stale')
    await until('its end has passed', async () => inSeconds(-1) > end)
    expect(refuses(receiver, 'orders')).toBe(true)
    await receiver.ready()
    expect(receiver.health()).toMatchObject({ entries: 1, lastError: expect.any(String) })

    if (way !== 'paused') await desk.deny(BILLING, PATIENTLY)
    await (way === 'paused' ? server.resume() : proxy.restore())
    const restoredAt = performance.now()
    if (way === 'paused') await desk.deny(BILLING, PATIENTLY)
    await Promise.all([receiver, cold, accepting].map((each) => untilRefused(each, 'billing')))
    expect(performance.now() - restoredAt).toBeLessThan(APPLIED_WITHIN_MS)
    await untilState(receiver, 'fresh')
    expect(refuses(receiver, 'orders')).toBe(false)
    expect(receiver.health()).not.toHaveProperty('lastError')
  } finally {
    for (const each of [desk, receiver, cold, accepting]) each.close()
    await proxy.close()
    await server.stop()
  }
}

describe.each(CHOSEN_LIBRARIES)('a server unreachable, through $library', ({ connect }) => {
  it('in whatever way: the last list stays in force', async () => {
    const heard = hearDenylist()
    await Promise.all(WAYS.map((way) => expectHeldThrough(way, connect)))
    expect(heard.filter(({ type }) => type === 'stale')).toHaveLength(WAYS.length)
    expect(heard.filter(({ type }) => type === 'recovered')).toHaveLength(WAYS.length)
  }, 60_000)

  it('for longer than maxStaleSeconds, it expires', async () => {
    const heard = hearDenylist()
    const server = await ownRedis()
    const proxy = await proxyOf(server)
    const desk = openDenylist(server)
    await desk.deny(entryOf(), PATIENTLY)
    const options = { maxStaleSeconds: 10 }
    const refusing = denylistOn(connect({ port: proxy.port }), options)
    const accepting = denylistOn(connect({ port: proxy.port }), {
      ...options,
      whenUnknown: 'accept',
    })
    await Promise.all([refusing.ready(), accepting.ready()])
    await proxy.fail('accepted and silent for good')
    await sleep(6000)
    expect(refuses(refusing, 'orders')).toBe(true)
    await untilState(refusing, 'expired')
    // A request looks at the wall clock alone, which may be a moment behind.
    await until('it is unknown', async () => refusing.lists(ISSUER) === undefined)
    await expect(refusing.ready()).rejects.toMatchObject({ code: 'unavailable' })
    await untilState(accepting, 'expired')
    expect(refuses(accepting, 'orders')).toBe(true)
    await accepting.ready()
    await until('it is told', async () => heard.some(({ type }) => type === 'expired'))
    await proxy.restore()
    await untilRefused(refusing, 'orders')
    await refusing.ready()
  })
})

describe('a server that answers otherwise', () => {
  it('loading its data: the last list stays in force', async () => {
    const server = await ownRedis({
      'enable-debug-command': 'yes',
      'key-load-delay': '200',
      'loading-process-events-interval-bytes': '1024',
    })
    const { receiver, desk } = await holding(server)
    await server.command('DEBUG', 'POPULATE', '20000')
    const reloading = server.command('DEBUG', 'RELOAD')
    await until('it says so', async () => receiver.health().lastError === 'server')
    await expectUnreadable(openDenylist(server))
    expect(refuses(receiver, 'orders')).toBe(true)
    await reloading
    await desk.deny(BILLING, PATIENTLY)
    await untilRefused(receiver, 'billing')
  })

  it('cut off from its replicas: stale, until a report is taken again', async () => {
    const server = await ownRedis()
    const { receiver } = await holding(server)
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '1')
    await untilState(receiver, 'stale')
    await until('it says so', async () => receiver.health().lastError === 'server')
    expect(refuses(receiver, 'orders')).toBe(true)
    const cold = openDenylist(server)
    await expect(cold.ready()).rejects.toMatchObject({ code: 'unavailable' })
    await server.command('CONFIG', 'SET', 'min-replicas-to-write', '0')
    await untilState(receiver, 'fresh')
    await untilState(cold, 'fresh')
  })

  it('full: it still tells what is denied', async () => {
    const server = await ownRedis()
    const { receiver, desk } = await holding(server)
    await server.command('CONFIG', 'SET', 'maxmemory', '1')
    await sleep(7000)
    await untilState(receiver, 'fresh')
    await expect(desk.deny(BILLING)).rejects.toThrow(/nothing was written: .*OOM/)
  })

  const target = JSON.stringify([ISSUER, 'caller', 'x'])
  const DAMAGES: Record<string, [string, string, ...string[]]> = {
    'a version': ['SET', 'version', 'one'],
    'a version out of range': ['SET', 'version', '9999999999999999 nonce'],
    'another type': ['SET', 'entries', 'text'],
    'a row': ['HSET', 'entries', target, '1'],
    'a cut-off that is none': ['HSET', 'entries', target, '1|-|5'],
    'a target': ['HSET', 'entries', 'orders', '1|-|-'],
    'a target in other words': ['HSET', 'entries', ` ${target}`, '1|-|-'],
    'a kind': ['HSET', 'entries', '["i","sub","x"]', '1|-|-'],
    'an object': ['HSET', 'entries', '{"0":"i","1":"caller","2":"x"}', '1|-|-'],
    'an issuer': ['HSET', 'entries', '["","caller","x"]', '1|-|-'],
    'a mark': ['HSET', 'marks', target, 'x'],
  }

  async function expectHeldThroughDamage(name: string, server: RedisServer): Promise<void> {
    const [word, part, ...rest] = DAMAGES[name] as [string, string]
    const prefix = `${name}:`
    const key = `${prefix}{denylist}:${part}`
    const { receiver, desk } = await holding(server, { prefix })
    await server.command('DEL', key)
    await server.command(word, key, ...rest)
    if (part !== 'version') await server.command('SET', `${prefix}{denylist}:version`, '2 x')
    const code = name === 'another type' ? 'server' : 'malformed'
    await until(`${name}: noticed`, async () => receiver.health().lastError === code)
    expect(refuses(receiver, 'orders')).toBe(true)
    await expect(desk.entries()).rejects.toMatchObject({ code: 'unavailable' })
    await server.command('DEL', key)
    await until(`${name}: fixed`, async () => receiver.health().lastError === undefined)
    expect(refuses(receiver, 'orders')).toBe(true)
  }

  it('damaged in whatever way: the last list stays in force until it is fixed', async () => {
    const server = await ownRedis()
    const names = Object.keys(DAMAGES)
    await Promise.all(names.map((name) => expectHeldThroughDamage(name, server)))
  })

  it('damaged receivers are no receivers', async () => {
    const server = await ownRedis()
    await server.command('HSET', `esa:{denylist}:receivers`, 'x', 'y')
    const desk = openDenylist(server)
    expect(await desk.receivers()).toEqual([])
    await desk.deny(entryOf(), PATIENTLY)
  })
})

it('a fraction of a millisecond does not hide a receiver', async () => {
  const server = await ownRedis()
  const receiver = openDenylist(server, { maxStaleSeconds: 16.1, name: 'orders' })
  await receiver.ready()
  await until('it is listed', async () => (await receiver.receivers())[0]?.name === 'orders')
})

describe('a list that is lost', () => {
  async function expectKept(server: RedisServer, receiver: RedisDenylist): Promise<void> {
    await until('it is noticed', async () => receiver.health().regressed === true)
    expect(receiver.health()).toMatchObject({ state: 'fresh', entries: 1 })
    expect(refuses(receiver, 'orders')).toBe(true)
    const late = openDenylist(server)
    await late.ready()
    expect(refuses(late, 'orders')).toBe(false)
    const desk = openDenylist(server)
    await desk.deny(BILLING, PATIENTLY)
    await Promise.all([receiver, late].map((each) => untilRefused(each, 'billing')))
    expect(refuses(receiver, 'orders')).toBe(true)
    expect(await desk.allow(ALLOW_ORDERS, PATIENTLY)).toMatchObject({ wasListed: false })
    await untilAccepted(receiver, 'orders')
    expect(refuses(receiver, 'billing')).toBe(true)
    expect(receiver.health()).not.toHaveProperty('regressed')
  }

  it('by a restart without data, ends by an allow alone', async () => {
    const heard = hearDenylist()
    const server = await ownRedis()
    const { receiver } = await holding(server)
    await server.restart({ keepData: false })
    await expectKept(server, receiver)
    expect(heard.filter(({ type }) => type === 'regressed')).toEqual([
      { type: 'regressed', kept: 1 },
    ])
  })

  it('by a server that has gone back to older data and a clock behind, likewise', async () => {
    const server = await ownRedis()
    const { receiver, desk } = await holding(server)
    await server.command('SAVE')
    const { version } = await desk.deny(entryOf({ kind: 'key', value: 'd-1' }), PATIENTLY)
    await until('it is held', async () => receiver.health().version === version)
    await until('it is reported', async () => (await desk.receivers())[0]?.version === version)
    await server.kill()
    await server.restart()
    // What was written last is lost; something else is written.
    await desk.deny(BILLING, { timeoutMs: 5000 })
    await untilRefused(receiver, 'billing')
    expect(receiver.lists(ISSUER)?.keys.has('d-1')).toBe(true)
    expect(receiver.health()).toMatchObject({ regressed: true, entries: 3 })
    await desk.deny(entryOf({ kind: 'key', value: 'd-1' }), PATIENTLY)
    await until('it is there again', async () => receiver.health().regressed === undefined)
  })

  it('an allow ends what only receivers hold, however far behind the server’s clock is', async () => {
    const server = await ownRedis()
    const desk = openDenylist(server)
    const { version } = await desk.deny(entryOf(), PATIENTLY)
    const ahead = version + 3_600_000_000
    const target = JSON.stringify([ISSUER, 'caller', 'orders'])
    await server.command('HSET', 'esa:{denylist}:entries', target, `${ahead}|-|-`)
    await server.command('SET', 'esa:{denylist}:version', `${ahead} x`)
    const receiver = openDenylist(server)
    await receiver.ready()
    await until('it has reported', async () => (await desk.receivers())[0]?.version === ahead)
    await server.command('FLUSHALL')
    await until('it has reported again', async () => (await desk.receivers()).length === 1)
    expect((await desk.allow(ALLOW_ORDERS, PATIENTLY)).version).toBeGreaterThan(ahead)
    await untilAccepted(receiver, 'orders')
  })
})

describe.each(CHOSEN_LIBRARIES)('a write whose reply is lost, through $library', ({ connect }) => {
  async function proxied() {
    const server = await ownRedis()
    const proxy = await proxyOf(server)
    const desk = denylistOn(connect({ port: proxy.port }))
    await desk.version()
    return { proxy, desk, direct: openDenylist(server) }
  }

  it('is asked again, and was written once', async () => {
    const { proxy, desk, direct } = await proxied()
    await desk.deny(BILLING, PATIENTLY)
    proxy.loseReply('written')
    const denied = await desk.deny(entryOf(), PATIENTLY)
    expect((await direct.version()).version).toBe(denied.version)
    proxy.loseReply('written')
    const allowed = await desk.allow(ALLOW_ORDERS, PATIENTLY)
    expect(allowed.wasListed).toBe(true)
    expect((await direct.version()).version).toBe(allowed.version)
  })

  it('does not undo what somebody has written in between', async () => {
    const server = await ownRedis()
    const direct = openDenylist(server)
    const { version, entry } = await direct.deny(entryOf(), PATIENTLY)
    const parts = ['version', 'entries', 'reasons', 'marks', 'receivers']
    const keys = parts.map((part) => `esa:{denylist}:${part}`)
    const target = JSON.stringify([entry.issuer, entry.kind, entry.value])
    const redis = new Redis({ port: server.port })
    onTestFinished(() => redis.disconnect())
    const allow = () => redis.eval(ALLOW.source, keys.length, ...keys, 'nonce', target, '60', '10')
    const first = await allow()
    expect(first).toEqual(['written', expect.stringMatching(/^\d+$/), '1'])
    expect(await direct.entries()).toEqual([])
    expect((await direct.deny(entryOf(), PATIENTLY)).version).toBeGreaterThan(version)
    expect(await allow()).toEqual(first)
    expect(await direct.entries()).toHaveLength(1)
  })

  it('says that it is not known, when no reply comes in time', async () => {
    const { proxy, desk, direct } = await proxied()
    await desk.deny(BILLING, PATIENTLY)
    proxy.hold()
    const { ms, error } = await timed(desk.deny(entryOf(), { timeoutMs: 700 }))
    expect(error).toMatchObject({
      name: 'ServiceAuthError',
      code: 'unavailable',
      mayBeWritten: true,
    })
    expect(error?.message).toContain('not known whether it was written')
    expect(ms).toBeLessThan(OVER_WITHIN_MS)
    proxy.release()
    await until('it was written', async () => (await direct.entries()).length === 2)
  })

  it('says that nothing was written, when it was never sent', async () => {
    const server = await ownRedis()
    await server.kill()
    const desk = denylistOn(connect({ port: server.port }))
    const { ms, error } = await timed(desk.deny(entryOf(), { timeoutMs: 500 }))
    expect(error).toMatchObject({ code: 'unavailable', mayBeWritten: false })
    expect(ms).toBeLessThan(OVER_WITHIN_MS)
    await server.restart()
    await desk.deny(entryOf(), { timeoutMs: 5000 })
  })
})
