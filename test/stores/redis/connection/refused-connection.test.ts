import { describe, expect, it } from 'vitest'
import type { ServerOptions } from '../../../support/redis/redis-clients.js'
import { denylistOn, entryOf } from '../denylist/denylist-kit.js'
import { CHOSEN_LIBRARIES, MAJORS, ownRedis, storeOn } from '../kit.js'

describe.each(CHOSEN_LIBRARIES)('a connection that Redis refuses ($library)', ({ connect }) => {
  async function faultsOf(options: ServerOptions): Promise<string[]> {
    const store = storeOn(connect(options), { timeoutMs: 700 })
    const denylist = denylistOn(connect(options))
    const faults: string[] = []
    const note = (error: Error): void => void faults.push(error.message)
    await store.check().catch(note)
    await store.consume('a-token', 1000).catch(note)
    await denylist.deny(entryOf()).catch(note)
    return faults
  }

  const expectAll = (faults: readonly string[], what: RegExp): void =>
    expect(faults).toEqual([1, 2, 3].map(() => expect.stringMatching(what)))

  it('is reported as a wrong password', async () => {
    const { port } = await ownRedis({ requirepass: 'the-right-password' })
    expectAll(
      await faultsOf({ port, password: 'a-wrong-password' }),
      /refuses the connection: WRONGPASS/,
    )
  })

  it('is never used as the default user, who needs no password', async () => {
    const server = await ownRedis()
    await server.command('ACL', 'SETUSER', 'app', 'on', '>right', '~*', '+@all')
    const login = { username: 'app', password: 'wrong' }
    expectAll(await faultsOf({ port: server.port, ...login }), /refuses the connection: WRONGPASS/)
    expect(await server.command('DBSIZE')).toBe('0')
  })

  it('is never used in database 0 when the database does not exist', async () => {
    const server = await ownRedis()
    expectAll(
      await faultsOf({ port: server.port, db: 9999 }),
      /refuses the connection: ERR DB index/,
    )
    expect(await server.command('DBSIZE')).toBe('0')
  })

  it('is reported as TLS to a plain port', async () => {
    const { port } = await ownRedis()
    expectAll(await faultsOf({ port, tls: {} }), /is this a port without TLS\?/)
  })
})

it.each(MAJORS)('a URL that names no number as database is a TypeError ($major)', (each) => {
  const client = new each.RedisOfRelease('redis://127.0.0.1/orders', { lazyConnect: true })
  expect(() => storeOn(client)).toThrow(/option db of redis must be the number/)
  expect(() => denylistOn(client)).toThrow(/option db of redis must be the number/)
})
