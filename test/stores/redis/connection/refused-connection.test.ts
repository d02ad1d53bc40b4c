import type { RedisClientLike } from 'express-service-auth/redis'
import { describe, expect, it } from 'vitest'
import { LIBRARY, type ServerOptions } from '../../../support/redis/redis-clients.js'
import { knowSecret } from '../../../support/secret-search/index.js'
import { denylistOn, entryOf, ISSUER } from '../denylist/denylist-kit.js'
import { CHOSEN_LIBRARIES, MAJORS, ownRedis, storeOn } from '../kit.js'

const [RIGHT, WRONG] = ['the-right-password-of-redis', 'the-wrong-password-of-redis']
for (const password of [RIGHT, WRONG]) knowSecret('a Redis password', password)

type Connect = (options: ServerOptions) => RedisClientLike

/** What each function of a store and of a denylist rejects with. */
async function faultsOf(connect: Connect, options: ServerOptions): Promise<string[]> {
  const store = storeOn(connect(options), { timeoutMs: 700 })
  const denylist = denylistOn(connect(options))
  const asked = await Promise.allSettled([
    store.check(),
    store.consume('a-token', 1000),
    denylist.deny(entryOf()),
    denylist.allow({ issuer: ISSUER, kind: 'caller', value: 'orders' }),
    denylist.entries(),
  ])
  const errors = asked.flatMap((each) => (each.status === 'rejected' ? [each.reason as Error] : []))
  for (const error of errors) {
    expect(String(error)).not.toMatch(/-password-of-redis/)
    expect(error).not.toHaveProperty('cause')
  }
  return errors.map(({ message }) => message)
}

const expectAll = (faults: readonly string[], what: RegExp): void =>
  expect(faults).toEqual([1, 2, 3, 4, 5].map(() => expect.stringMatching(what)))

describe.each(CHOSEN_LIBRARIES)('a connection that Redis refuses ($library)', ({ connect }) => {
  it('is reported as a wrong password, or as one that is missing', async () => {
    const { port } = await ownRedis({ requirepass: RIGHT })
    // To a long question that ioredis 5 sends behind the password, Redis answers first.
    const told = /refuses the connection: (WRONGPASS|NOAUTH)|NOAUTH/
    expectAll(await faultsOf(connect, { port, password: WRONG }), told)
    expectAll(await faultsOf(connect, { port }), /NOAUTH/)
    const denylist = denylistOn(connect({ port, password: WRONG }))
    await expect(denylist.ready()).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('is never used as the default user, who needs no password', async () => {
    const server = await ownRedis()
    await server.command('ACL', 'SETUSER', 'app', 'on', '>right', '~*', '+@all')
    const login = { username: 'app', password: WRONG, port: server.port }
    expectAll(await faultsOf(connect, login), /refuses the connection: WRONGPASS/)
    expect(await server.command('DBSIZE')).toBe('0')
  })

  it('is never used in database 0 when the database does not exist', async () => {
    const server = await ownRedis()
    const faults = await faultsOf(connect, { port: server.port, db: 9999 })
    expectAll(faults, /refuses the connection: ERR DB index/)
    expect(await server.command('DBSIZE')).toBe('0')
  })

  it('is reported as TLS to a plain port', async () => {
    const { port } = await ownRedis()
    expectAll(await faultsOf(connect, { port, tls: {} }), /is this a port without TLS\?/)
  })
})

it('a password that is wrong or missing is told as that by a cluster', async () => {
  const cluster = { 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' }
  const { port } = await ownRedis({ requirepass: RIGHT, ...cluster })
  const connect: Connect = ({ password }) =>
    LIBRARY.connectCluster(
      [{ host: '127.0.0.1', port }],
      password === undefined ? {} : { password },
    )
  expectAll(await faultsOf(connect, { port, password: WRONG }), /WRONGPASS|NOAUTH/)
  expectAll(await faultsOf(connect, { port }), /NOAUTH/)
})

it.each(MAJORS)('a URL that names no number as database is a TypeError ($major)', (each) => {
  const client = new each.RedisOfRelease('redis://127.0.0.1/orders', { lazyConnect: true })
  expect(() => storeOn(client)).toThrow(/option db of redis must be the number/)
  expect(() => denylistOn(client)).toThrow(/option db of redis must be the number/)
})
