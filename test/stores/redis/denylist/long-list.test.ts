import type { RedisDenylist } from 'express-service-auth/redis'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisServer, startRedis } from '../../../support/redis/redis.js'
import { until } from '../../../support/until.js'
import { entryOf, ISSUER, openDenylist, PATIENTLY } from './denylist-kit.js'

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

  it('is shortened by the entries that have ended', async () => {
    const rows = tokens(250).map(({ value }) => [JSON.stringify([ISSUER, 'token', value]), '1|5|-'])
    await server.command('HSET', `${KEYS}:entries`, ...rows.flat())
    await server.command('HSET', `${KEYS}:reasons`, rows[0]?.[0] ?? '', 'why')
    // Each write looks at 20 rows.
    await until('all are gone', async () => {
      await desk.deny(entryOf(), PATIENTLY)
      return (await server.command('HLEN', `${KEYS}:entries`)) === '1'
    })
    expect(await server.command('HLEN', `${KEYS}:reasons`)).toBe('1')
  })

  it('that is full of ended entries has room', async () => {
    const rows = tokens(10_000).map(({ value }) => [
      JSON.stringify([ISSUER, 'token', value]),
      '1|5|-',
    ])
    await server.command('HSET', `${KEYS}:entries`, ...rows.flat())
    await desk.deny(entryOf(), PATIENTLY)
    expect(await server.command('HLEN', `${KEYS}:entries`)).toBe('1')
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
})

describe('a damaged row', () => {
  it('of the target is not guessed: it is denied after it was allowed', async () => {
    const receiver = openDenylist(server)
    await desk.deny(entryOf())
    const target = { issuer: ISSUER, kind: 'caller', value: 'orders' } as const
    const field = JSON.stringify(Object.values(target))
    await server.command('HSET', `${KEYS}:entries`, field, 'x')
    await server.command('HSET', `${KEYS}:marks`, field, 'x')
    await server.command('SET', `${KEYS}:version`, 'x')
    for (const denied of [entryOf(), [entryOf({ value: 'billing' }), entryOf()]] as const) {
      await expect(desk.deny(denied as never)).rejects.toMatchObject({
        mayBeWritten: false,
        message: expect.stringContaining('its row of this target is damaged'),
      })
    }
    expect(await server.command('HLEN', `${KEYS}:entries`)).toBe('1')
    await desk.allow(target)
    await desk.deny(entryOf())
    await receiver.ready()
    expect(await desk.entries()).toHaveLength(1)
  })

  it('is named, and other targets are denied beside it', async () => {
    await server.command('HSET', `${KEYS}:entries`, 'orders', '1|-|-')
    await desk.deny(entryOf({ value: 'billing' }))
    await expect(desk.entries()).rejects.toMatchObject({
      code: 'unavailable',
      message:
        'the denylist cannot be read: no receiver can read the field orders of its hash entries',
    })
    await server.command('HDEL', `${KEYS}:entries`, 'orders')
    expect(await desk.entries()).toHaveLength(1)
  })
})
