import type { RedisDenylist } from 'express-service-auth/redis'
import { describe, expect, it } from 'vitest'
import { LIBRARY } from '../../../support/redis/redis-clients.js'
import { ownRedis, sharedRedis } from '../kit.js'
import { denylistOn, entryOf, ISSUER, openDenylist } from './denylist-kit.js'

const KEPT = entryOf()
const OTHER = entryOf({ value: 'billing' })
const ALLOW_KEPT = { issuer: ISSUER, kind: 'caller', value: 'orders' } as const

const server = await sharedRedis()

interface Desk {
  readonly prefix: string
  readonly list: RedisDenylist
}

function openDesk(prefix: string, login: { username?: string } = {}): Desk {
  const password = login.username === undefined ? {} : { password: 'operator-password' }
  const redis = LIBRARY.connect({ port: server.port, ...login, ...password })
  return { prefix, list: denylistOn(redis, { prefix }) }
}

/** How many entries and marks there are. */
async function listOf({ prefix }: Desk): Promise<string[]> {
  const keyOf = (part: string): string => `${prefix}{denylist}:${part}`
  return [
    await server.command('HLEN', keyOf('entries')),
    await server.command('HLEN', keyOf('marks')),
  ]
}

async function expectNothingWritten(desk: Desk, write: Promise<unknown>, before: string[]) {
  await expect(write).rejects.toMatchObject({
    code: 'unavailable',
    mayBeWritten: false,
    message: expect.stringContaining('nothing was written'),
  })
  expect(await listOf(desk)).toEqual(before)
}

describe('what a server refuses in the middle leaves nothing behind', () => {
  it('a key of another type', async () => {
    const desk = openDesk('type:')
    await desk.list.deny(KEPT)
    const before = await listOf(desk)
    const reasons = `${desk.prefix}{denylist}:reasons`
    await server.command('DEL', reasons)
    await server.command('SET', reasons, 'text')
    await expectNothingWritten(desk, desk.list.deny(OTHER), before)
    await expectNothingWritten(desk, desk.list.allow(ALLOW_KEPT), before)
  })

  it.each(['set', 'hset', 'hdel'])('a user without the right to %s', async (right) => {
    const username = `without-${right}`
    const desk = openDesk(`${right}:`)
    await desk.list.deny(KEPT)
    const before = await listOf(desk)
    const rights = ['on', '>operator-password', '~*', '+@all', `-${right}`]
    await server.command('ACL', 'SETUSER', username, ...rights)
    const { list } = openDesk(desk.prefix, { username })
    await expectNothingWritten(desk, list.allow(ALLOW_KEPT), before)
    if (right !== 'hdel') await expectNothingWritten(desk, list.deny(OTHER), before)
  })

  it('allow, on a server that is full, is not refused', async () => {
    const full = await ownRedis()
    const list = openDenylist(full)
    await list.deny(KEPT)
    await full.command('CONFIG', 'SET', 'maxmemory', '1')
    await expect(list.allow(ALLOW_KEPT)).resolves.toMatchObject({ wasListed: true })
    expect(await list.entries()).toEqual([])
    expect(await full.command('HLEN', 'esa:{denylist}:marks')).toBe('1')
  })
})
