import { setTimeout as sleep } from 'node:timers/promises'
import { type RedisDenylist, redisDenylist } from 'express-service-auth/redis'
import { Redis } from 'ioredis'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { LIBRARY } from '../../../support/redis/redis-clients.js'
import { until } from '../../../support/until.js'
import { sharedRedis } from '../kit.js'
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
} from './denylist-kit.js'

const server = await sharedRedis()
let desk: RedisDenylist
beforeEach(async () => {
  await server.command('FLUSHALL')
  desk = openDenylist(server)
})

const nowSeconds = (): number => Math.floor(Date.now() / 1000)

describe('what is denied', () => {
  it('ends at its time', async () => {
    const receiver = openDenylist(server)
    await receiver.ready()
    const until_ = nowSeconds() + 2
    await desk.deny(entryOf({ until: until_ }))
    await untilRefused(receiver, 'orders')
    await untilAccepted(receiver, 'orders')
    const endedAt = Date.now() / 1000
    expect(endedAt).toBeGreaterThanOrEqual(until_)
    expect(endedAt).toBeLessThan(until_ + 1)
    expect(receiver.health()).toMatchObject({ entries: 0, state: 'fresh' })
    expect(await desk.entries()).toEqual([])
    await desk.deny(entryOf({ value: 'billing' }))
    expect(await server.command('HLEN', 'esa:{denylist}:entries')).toBe('1')
    expect(await server.command('HLEN', 'esa:{denylist}:reasons')).toBe('1')
  })

  it('twice has the later end, with the reason, author and time of the entry that counts', async () => {
    const soon = nowSeconds() + 100
    const first = entryOf({ until: soon + 100 })
    expect(await desk.deny(first)).toMatchObject({ entry: first, isEarlier: false })
    const again = entryOf({ until: soon, reason: 'again', by: 'you', at: 1_790_000_001 })
    expect(await desk.deny(again)).toMatchObject({ entry: first, isEarlier: true })
    expect(await desk.deny({ ...again, until: first.until })).toMatchObject({ entry: first })
    expect(await desk.entries()).toEqual([first])
    const forever = { ...again, until: null }
    expect(await desk.deny(forever)).toMatchObject({ entry: forever, isEarlier: false })
    const third = { ...again, at: again.at + 1 }
    expect(await desk.deny(third)).toMatchObject({ entry: forever, isEarlier: true })
    expect(await desk.entries()).toEqual([forever])
  })

  it('twice with a lost reason does not get another author', async () => {
    await desk.deny(entryOf())
    await server.command('DEL', 'esa:{denylist}:reasons')
    const { entry, isEarlier } = await desk.deny(entryOf({ by: 'you' }))
    expect({ entry, isEarlier }).toMatchObject({ entry: { by: '(lost)' }, isEarlier: true })
  })

  it('by two cut-offs has the later one', async () => {
    const cutOff = entryOf({ kind: 'issued-before', value: 200, until: null })
    await desk.deny(cutOff)
    const earlier = { ...cutOff, value: 100.5, reason: 'earlier' }
    expect(await desk.deny(earlier)).toMatchObject({ entry: cutOff, isEarlier: true })
    const later = { ...cutOff, value: 300.5, reason: 'later', until: nowSeconds() + 100 }
    expect(await desk.deny(later)).toMatchObject({ entry: { ...later, until: null } })
    expect(await desk.entries()).toEqual([{ ...later, until: null }])
    const receiver = openDenylist(server)
    await receiver.ready()
    expect(receiver.lists(ISSUER)?.issuedBefore).toBe(300.5)
  })

  it('again after it was allowed may end earlier', async () => {
    const receiver = openDenylist(server)
    await receiver.ready()
    await desk.deny(entryOf())
    await untilRefused(receiver, 'orders')
    await desk.allow(entryOf() as never)
    const denied = await desk.deny(entryOf({ until: nowSeconds() + 2 }))
    await until('the receiver has it', async () => receiver.health().version === denied.version)
    expect(receiver.health()).not.toHaveProperty('regressed')
    await untilAccepted(receiver, 'orders')
  })

  it('may be any text', async () => {
    const value = `"'{}[]\\|\n\r\0 ${'€'.repeat(200)}`
    const entry = entryOf({ value, issuer: value, reason: value, by: value })
    await desk.deny(entry)
    expect(await desk.entries()).toEqual([entry])
    const receiver = openDenylist(server, { name: value })
    await receiver.ready()
    expect(receiver.lists(value)?.callers.has(value)).toBe(true)
    await until('it has reported', async () => (await desk.receivers())[0]?.name === value)
  })

  it('is told', async () => {
    const heard = hearDenylist()
    const receiver = openDenylist(server)
    await receiver.ready()
    const { version } = await desk.deny(entryOf())
    await untilRefused(receiver, 'orders')
    const allowed = await desk.allow({ issuer: ISSUER, kind: 'caller', value: 'orders' })
    await untilAccepted(receiver, 'orders')
    expect(heard).toEqual([
      { type: 'changed', version, added: 1, removed: 0 },
      { type: 'changed', version: allowed.version, added: 0, removed: 1 },
    ])
  })
})

describe('the list', () => {
  it('takes 10,000 entries and not one more, but an end to one of them', async () => {
    const rows: string[] = []
    for (let count = 0; count < 9999; count++) {
      rows.push(JSON.stringify([ISSUER, 'caller', `caller ${count}`]), '1|-|-')
    }
    await server.command('HSET', 'esa:{denylist}:entries', ...rows)
    await desk.deny(entryOf())
    const before = await desk.version()
    const refused = desk.deny(entryOf({ value: 'one more' }))
    await expect(refused).rejects.toThrow(TypeError)
    await expect(refused).rejects.toThrow('the list is full, it has 10000 entries')
    expect((await desk.version()).version).toBe(before.version)
    await desk.deny(entryOf({ reason: 'again' }))
    for (let count = 0; count < 5; count++) {
      await desk.allow({ issuer: ISSUER, kind: 'key', value: `marks do not count ${count}` })
    }
    await desk.allow({ issuer: ISSUER, kind: 'caller', value: 'orders' })
    await desk.deny(entryOf({ value: 'one more' }))
    const receiver = openDenylist(server)
    await receiver.ready()
    expect(receiver.health().entries).toBe(10_000)
  })

  it('keeps a mark for seven days', async () => {
    const old = Math.floor(Date.now() / 1000) - 604_800
    const target = (value: string): string => JSON.stringify([ISSUER, 'caller', value])
    await server.command('HSET', 'esa:{denylist}:marks', target('a'), `1|${old - 5}|1|n`)
    await server.command('HSET', 'esa:{denylist}:marks', target('b'), `1|${old + 60}|1|n`)
    await desk.allow({ issuer: ISSUER, kind: 'caller', value: 'c' })
    expect(await server.command('HEXISTS', 'esa:{denylist}:marks', target('a'))).toBe('0')
    expect(await server.command('HLEN', 'esa:{denylist}:marks')).toBe('2')
  })

  it('has versions that only rise, above the clock and above all that receivers have seen', async () => {
    const clock = Date.now() * 1000
    const { version } = await desk.deny(entryOf())
    expect(version).toBeGreaterThanOrEqual(clock)
    const ahead = version + 1e12
    await server.command('SET', 'esa:{denylist}:version', `${ahead} nonce`)
    expect((await desk.deny(entryOf())).version).toBe(ahead + 1)
    const reported = ahead + 1e6
    const row = `5|${reported}|60000|${Date.now()}|a receiver`
    await server.command('HSET', 'esa:{denylist}:receivers', 'instance', row)
    expect((await desk.deny(entryOf())).version).toBe(reported + 1)
    expect(await desk.version()).toEqual({
      version: reported + 1,
      serverSeconds: expect.closeTo(Date.now() / 1000, 0),
    })
  })

  it('lies in five keys of one slot, whatever the prefix', async () => {
    openDenylist(server, { prefix: '{a}:' })
    openDenylist(server, { prefix: 'a{b' })
    const receiver = openDenylist(server)
    await desk.deny(entryOf())
    await desk.allow({ issuer: ISSUER, kind: 'key', value: 'x' })
    await receiver.ready()
    await until('it has reported', async () => (await desk.receivers()).length === 1)
    const client = new Redis(server.port)
    onTestFinished(() => client.disconnect())
    const parts = ['entries', 'marks', 'reasons', 'receivers', 'version']
    expect((await client.keys('*')).sort()).toEqual(parts.map((part) => `esa:{denylist}:${part}`))
    expect(await client.hvals('esa:{denylist}:entries')).toEqual([
      expect.stringMatching(/^\d+\|-\|-$/),
    ])
  })
})

describe('a receiver', () => {
  it('is listed with the version it applies, and not once it is closed', async () => {
    const receiver = openDenylist(server, { name: 'orders 1' })
    const other = openDenylist(server, { name: 'orders 2' })
    await Promise.all([receiver.ready(), other.ready()])
    const { version } = await desk.deny(entryOf())
    await until('both apply it', async () => {
      const receivers = await desk.receivers()
      return receivers.length === 2 && receivers.every((each) => each.version === version)
    })
    const [first] = (await desk.receivers()).filter(({ name }) => name === 'orders 1')
    expect(first).toEqual({ name: 'orders 1', version, seenSecondsAgo: expect.any(Number) })
    expect(first?.seenSecondsAgo).toBeLessThan(10)
    receiver.close()
    await until('one is gone', async () => (await desk.receivers()).length === 1)
  })

  it('that is silent is named for its maxStaleSeconds', async () => {
    const row = (seenAt: number): string => `5|5|10000|${seenAt}|dead`
    await server.command('HSET', 'esa:{denylist}:receivers', 'one', row(Date.now() - 9000))
    await server.command('HSET', 'esa:{denylist}:receivers', 'two', row(Date.now() - 11_000))
    expect(await desk.receivers()).toEqual([
      { name: 'dead', version: 5, seenSecondsAgo: expect.closeTo(9, 0) },
    ])
    const receiver = openDenylist(server)
    await receiver.ready()
    await until('who is long dead is removed', async () => {
      return (await server.command('HEXISTS', 'esa:{denylist}:receivers', 'two')) === '0'
    })
  })

  it('reports a new version at once, whenever it has last reported', async () => {
    const receivers = Array.from({ length: 3 }, () => openDenylist(server))
    await Promise.all(receivers.map((each) => each.ready()))
    const tookMs: number[] = []
    for (let turn = 0; turn < 12; turn += 1) {
      // The routine report falls between any two of these.
      await sleep(turn * 40)
      const { version } = await desk.deny(entryOf({ value: `c${turn}` }), PATIENTLY)
      const writtenAt = performance.now()
      await until('all report it', async () => {
        const listed = await desk.receivers()
        return listed.length === 3 && listed.every((each) => each.version === version)
      })
      tookMs.push(performance.now() - writtenAt)
    }
    expect(tookMs.toSorted((one, other) => one - other).at(-2)).toBeLessThan(500)
  })

  it('neither polls nor connects before a policy has it', async () => {
    const isConnected = async (): Promise<boolean> =>
      (await server.command('CLIENT', 'LIST')).includes('name=unasked')
    const receiver = denylistOn(LIBRARY.connect({ port: server.port, name: 'unasked' }))
    await sleep(600)
    expect(await isConnected()).toBe(false)
    expect(receiver.health()).toEqual({ state: 'cold', entries: 0, version: 0 })
    expect(receiver.lists(ISSUER)).toBeUndefined()
    await until('it polls', async () => receiver.health().state === 'fresh')
    expect(await isConnected()).toBe(true)
  })

  it('that is closed ages on, asks nothing and says so', async () => {
    const receiver = openDenylist(server)
    await desk.deny(entryOf())
    await receiver.ready()
    receiver.close()
    receiver.close()
    expect(refuses(receiver, 'orders')).toBe(true)
    expect(receiver.health()).toMatchObject({ state: 'fresh', lastError: 'closed' })
    await until('it is stale', async () => receiver.health().state === 'stale')
    await expect(receiver.deny(entryOf())).rejects.toThrow('closed')
    await expect(receiver.entries()).rejects.toMatchObject({ code: 'unavailable' })
    const cold = openDenylist(server)
    cold.close()
    await expect(cold.ready()).rejects.toMatchObject({ code: 'unavailable' })
    expect(cold.lists(ISSUER)).toBeUndefined()
  })
})

describe('what is wrong is refused with a TypeError that names it', () => {
  const client = new Redis({ lazyConnect: true })

  it.each([
    [{}, {}, 'redis must be'],
    [client, { timeoutMs: 251 }, 'timeoutMs'],
    [client, { pollMs: 49 }, 'pollMs'],
    [client, { maxStaleSeconds: 9 }, 'maxStaleSeconds'],
    [client, { maxStaleSeconds: 604_801 }, 'maxStaleSeconds'],
    [client, { whenUnknown: 'ignore' }, 'whenUnknown'],
    [client, { name: '' }, 'name'],
    [client, { prefix: 1 }, 'prefix'],
    [client, { other: 1 }, 'other is not an option'],
  ])('options %#', (redis, options, named) => {
    const make = (): unknown => redisDenylist(redis as never, options as never)
    expect(make).toThrow(TypeError)
    expect(make).toThrow(named)
  })

  const text = 'x'.repeat(257)
  it.each([
    [undefined, 'the options'],
    [{ issuer: text }, 'issuer'],
    [{ kind: 'sub' }, 'kind'],
    [{ value: text }, 'value'],
    [{ value: '\ud800' }, 'value'],
    [{ value: 5 }, 'value'],
    [{ kind: 'issued-before', value: Date.now() }, 'value'],
    [{ reason: '' }, 'reason'],
    [{ by: 7 }, 'by'],
    [{ at: Date.now() }, 'at'],
    [{ until: Date.now() }, 'until'],
    [{ until: Number.POSITIVE_INFINITY }, 'until'],
    [{ until: 5 }, 'until must be later than now'],
    [{ more: 1 }, 'more is not an option'],
  ])('an entry %#', async (changes, named) => {
    const entry = changes === undefined ? undefined : { ...entryOf(), ...changes }
    const denied = desk.deny(entry as never)
    await expect(denied).rejects.toThrow(TypeError)
    await expect(denied).rejects.toThrow(named)
    expect(await desk.version()).toMatchObject({ version: 0 })
  })

  it.each([
    [{ issuer: ISSUER, kind: 'caller' }, 'value'],
    [{ issuer: ISSUER, kind: 'other', value: 'x' }, 'kind'],
    [{ kind: 'issued-before' }, 'issuer'],
  ])('a target %#', async (target, named) => {
    const allowed = desk.allow(target as never)
    await expect(allowed).rejects.toThrow(TypeError)
    await expect(allowed).rejects.toThrow(named)
  })

  it('a time limit', async () => {
    await expect(desk.entries({ timeoutMs: 0 })).rejects.toThrow(TypeError)
  })
})
