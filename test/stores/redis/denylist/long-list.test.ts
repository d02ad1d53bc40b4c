import type { RedisDenylist } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../support/redis/redis.js'
import { begin, openStore, requestFor } from '../kit.js'
import { denylistOn, entryOf, ISSUER, openDenylist, PATIENTLY } from './denylist-kit.js'

const LONG = 9_900
const KEYS = 'esa:{denylist}'

let server: RedisServer
let desk: RedisDenylist

beforeAll(async () => {
  server = await startRedis()
})
beforeEach(async () => {
  await server.command('FLUSHALL')
  desk = openDenylist(server)
})
afterAll(() => server.stop())

const tokens = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => entryOf({ kind: 'token', value: `t${from + at}` }))

async function fill(count: number): Promise<void> {
  for (let from = 0; from < count; from += 1000) {
    await desk.deny(tokens(Math.min(1000, count - from), from), PATIENTLY)
  }
}

/** Microseconds of Redis for each call since the last reset. */
async function scriptMicroseconds(): Promise<number> {
  const stats = await server.command('INFO', 'commandstats')
  return Number(/cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(stats)?.[1])
}

describe('a long list', () => {
  it('costs a write less than 1 ms of Redis', async () => {
    await fill(LONG)
    const marks = Array.from({ length: 20 }, (_, at) => ({
      issuer: ISSUER,
      kind: 'token' as const,
      value: `t${at}`,
    }))
    await desk.deny(entryOf(), PATIENTLY)
    await server.command('CONFIG', 'RESETSTAT')
    for (let at = 0; at < 40; at += 1) await desk.deny(entryOf({ value: `c${at}` }), PATIENTLY)
    expect(await scriptMicroseconds()).toBeLessThan(1000)
    await server.command('CONFIG', 'RESETSTAT')
    for (const mark of marks) await desk.allow(mark, PATIENTLY)
    expect(await scriptMicroseconds()).toBeLessThan(1000)
  }, 60_000)

  it('does not hold up reservations beside 20 writers', async () => {
    await fill(LONG)
    const { store } = openStore(server)
    const writers = Array.from({ length: 20 }, () =>
      denylistOn(new Redis({ port: server.port, lazyConnect: true })),
    )
    const target = { issuer: ISSUER, kind: 'caller', value: 'x' } as const
    let isOver = false
    let written = 0
    const writing = writers.map(async (writer) => {
      while (!isOver) {
        await writer.deny(entryOf({ value: 'x' }))
        await writer.allow(target)
        written += 2
      }
    })
    for (let at = 0; at < 100 || written < 200; at += 1) await begin(store, requestFor())
    isOver = true
    await Promise.all(writing)
  }, 60_000)

  it('is shortened by the entries that have ended, and does not count them', async () => {
    const until = Date.now() / 1000 + 2
    await desk.deny(
      tokens(250).map((entry) => ({ ...entry, until })),
      PATIENTLY,
    )
    await new Promise((resolve) => setTimeout(resolve, 2100))
    for (const left of [151, 52, 3]) {
      await desk.deny(entryOf({ value: `after ${left}` }), PATIENTLY)
      expect(await server.command('HLEN', `${KEYS}:entries`)).toBe(String(left))
    }
    expect(await server.command('ZCARD', `${KEYS}:entry-ends`)).toBe('3')
    expect(await server.command('HLEN', `${KEYS}:reasons`)).toBe('3')
  })
})

describe('several entries at once', () => {
  it('are written under one version, in their order, each with the entry that counts', async () => {
    const earlier = entryOf({ reason: 'earlier' })
    await desk.deny(earlier)
    const list = [entryOf({ value: 'billing' }), entryOf(), entryOf({ kind: 'key', value: 'k' })]
    const denied = await desk.deny(list)
    expect(denied).toEqual({
      version: (await desk.version()).version,
      entries: [
        { entry: list[0], isEarlier: false },
        { entry: earlier, isEarlier: true },
        { entry: list[2], isEarlier: false },
      ],
    })
    expect(await desk.entries()).toHaveLength(3)
  })

  it('with one target: the later end counts', async () => {
    const until = Math.floor(Date.now() / 1000) + 100
    const long = entryOf({ until: until + 1, reason: 'long' })
    const { entries } = await desk.deny([entryOf({ until }), long, entryOf({ until, at: 3 })])
    expect(entries.map(({ entry }) => entry)).toEqual([long, long, long])
    expect(await desk.entries()).toEqual([long])
  })

  it.each<[string, unknown, string]>([
    ['none', [], 'entries must be 1 to 1000 entries'],
    ['1001', tokens(1001), 'entries must be 1 to 1000 entries'],
    ['one that is not valid', [entryOf(), { ...entryOf(), by: 1 }], 'entries[1].by must be'],
    ['one that has ended', [entryOf(), entryOf({ until: 5 })], 'later than now (index 1)'],
  ])('are refused together: %s', async (_what, list, message) => {
    const denied = desk.deny(list as never)
    await expect(denied).rejects.toThrow(TypeError)
    await expect(denied).rejects.toThrow(message)
    expect(await desk.version()).toMatchObject({ version: 0 })
    expect(await server.command('DBSIZE')).toBe('0')
  })

  it('are refused together where the last has no room', async () => {
    await fill(9_999)
    const { version } = await desk.version()
    const denied = desk.deny([entryOf(), entryOf({ value: 'other' })], PATIENTLY)
    await expect(denied).rejects.toThrow('the list is full')
    expect(await desk.version()).toMatchObject({ version })
    expect(await server.command('HLEN', `${KEYS}:entries`)).toBe('9999')
  }, 60_000)
})

describe('a list with a damaged name', () => {
  const DAMAGE = ['HSET', `${KEYS}:entries`, 'orders', '1|-|-'] as const

  it('is not written to, until the damaged rows are removed', async () => {
    await desk.deny(entryOf())
    await server.command(...DAMAGE)
    const { version } = await desk.version()
    for (const write of [
      () => desk.deny(entryOf({ value: 'billing' })),
      () => desk.deny(tokens(2)),
      () => desk.allow({ issuer: ISSUER, kind: 'caller', value: 'orders' }),
    ]) {
      await expect(write()).rejects.toMatchObject({
        mayBeWritten: false,
        message: expect.stringContaining('service-auth denylist --repair'),
      })
    }
    expect(await desk.version()).toMatchObject({ version })
    const damaged = await desk.damagedRows()
    expect(damaged).toMatchObject([{ key: 'entries', name: 'orders', text: '1|-|-' }])
    expect(await desk.removeRows(damaged)).toMatchObject({ removed: 1 })
    expect(await desk.damagedRows()).toEqual([])
    await desk.deny(entryOf({ value: 'billing' }))
    expect(await desk.entries()).toHaveLength(2)
  })

  it('loses no row that has changed since it was read', async () => {
    await server.command(...DAMAGE)
    const damaged = await desk.damagedRows()
    await server.command('HSET', `${KEYS}:entries`, 'orders', '2|-|-')
    expect(await desk.removeRows(damaged)).toMatchObject({ removed: 0 })
    expect(await desk.damagedRows()).toHaveLength(1)
  })

  it('that is a row with a valid name, a mark or the version is repaired, too', async () => {
    const receiver = openDenylist(server)
    await desk.deny(entryOf())
    const target = JSON.stringify([ISSUER, 'caller', 'orders'])
    await server.command('HSET', `${KEYS}:entries`, target, 'x')
    await server.command('HSET', `${KEYS}:marks`, target, 'x')
    await server.command('SET', `${KEYS}:version`, 'x')
    await expect(desk.deny(entryOf())).rejects.toMatchObject({ mayBeWritten: false })
    const damaged = await desk.damagedRows()
    expect(damaged.map(({ key }) => key)).toEqual(['version', 'entries', 'marks'])
    await desk.removeRows(damaged)
    await receiver.ready()
    await desk.deny(entryOf())
    expect(await desk.entries()).toHaveLength(1)
  })

  it('rows that another program has added or removed rightly are taken over', async () => {
    const target = JSON.stringify([ISSUER, 'key', 'd-1'])
    await server.command('HSET', `${KEYS}:entries`, target, '1|5.5|-')
    await desk.deny(entryOf())
    expect(await desk.entries()).toEqual([entryOf()])
    await server.command('DEL', `${KEYS}:entries`)
    await desk.deny(entryOf())
    expect(await server.command('ZCARD', `${KEYS}:entry-ends`)).toBe('1')
  })
})
