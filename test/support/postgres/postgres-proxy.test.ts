import { Client } from 'pg'
import sql from 'postgres'
import { describe, expect, it, onTestFinished } from 'vitest'
import { startPgbouncer } from './pgbouncer.js'
import type { PostgresAddress } from './postgres-address.js'
import { createDatabase, sharedPostgres } from './postgres-database.js'
import { startPostgresProxy } from './postgres-proxy.js'

const postgres = await sharedPostgres()

async function open(
  through: (server: PostgresAddress) => Promise<PostgresAddress> = async (server) => server,
) {
  const { name, drop } = await createDatabase(postgres)
  onTestFinished(drop)
  await postgres.query('create table orders (id int primary key)', [], name)
  const proxy = await startPostgresProxy(await through(postgres))
  onTestFinished(() => proxy.stop())
  const connect = async (): Promise<Client> => {
    const client = new Client({ connectionString: proxy.urlFor(name) })
    client.on('error', () => {})
    onTestFinished(() => client.end())
    await client.connect()
    return client
  }
  const orders = async (): Promise<unknown[]> =>
    (await postgres.query('select id from orders order by id', [], name)).map(({ id }) => id)
  return { name, proxy, connect, orders }
}

async function write(client: Client, id: number): Promise<void> {
  await client.query('begin')
  await client.query('insert into orders\n  values ($1)', [id])
  await client.query('commit')
}

describe('startPostgresProxy', () => {
  it('counts what pg runs', async () => {
    const { proxy, connect, orders } = await open()
    const client = await connect()
    await write(client, 1)
    await client.query('begin; insert into orders values (2); rollback')
    await client.query('begin;insert into orders values (3);commit')
    expect(proxy.statements).toEqual([
      'begin',
      'insert into orders values ($1)',
      'commit',
      'begin; insert into orders values (2); rollback',
      'begin;insert into orders values (3);commit',
    ])
    expect(proxy).toMatchObject({ roundTrips: 5, commits: 2, connections: 1 })
    expect(await orders()).toEqual([1, 3])
    proxy.reset()
    expect(proxy).toMatchObject({ statements: [], roundTrips: 0, commits: 0, connections: 0 })
  })

  it('counts what postgres.js runs, prepared and pipelined', async () => {
    const { proxy, name, orders } = await open()
    const client = sql(proxy.urlFor(name), { max: 1, onnotice: () => {} })
    onTestFinished(() => client.end())
    await client`select 1`
    proxy.reset()
    await client.begin((tx) => [
      tx`insert into orders values (${1})`,
      tx`insert into orders values (${2})`,
    ])
    expect(proxy.statements.map((text) => text.slice(0, 6))).toEqual([
      'begin',
      'insert',
      'insert',
      'commit',
    ])
    expect(proxy.commits).toBe(1)
    expect(await orders()).toEqual([1, 2])
  })

  it.each([
    { at: 1, moment: 'before', kept: [] },
    { at: 2, moment: 'after', kept: [] },
    { at: 3, moment: 'before', kept: [] },
    { at: 3, moment: 'after', kept: [1] },
    { at: /^commit/, moment: 'in the reply', kept: [1] },
  ] as const)('cuts $moment statement $at', async ({ kept, ...rule }) => {
    const { proxy, connect, orders } = await open()
    const client = await connect()
    proxy.cutAt(rule)
    await expect(write(client, 1)).rejects.toThrow(/Connection terminated|ECONNRESET/)
    expect(proxy.cuts).toEqual(proxy.statements.slice(-1))
    expect(await orders()).toEqual(kept)
    await write(await connect(), 2)
    expect(await orders()).toEqual([...kept, 2])
  })

  it('runs a statement by itself to its end before the reply is lost', async () => {
    const { proxy, connect, orders } = await open()
    const client = await connect()
    proxy.cutAt({ at: 1, moment: 'after' })
    await expect(client.query('insert into orders values ($1)', [1])).rejects.toThrow()
    expect(await orders()).toEqual([1])
  })

  it('holds a statement silently, and lets it go when healed', async () => {
    const { proxy, connect, orders } = await open()
    const client = await connect()
    proxy.cutAt({ at: /^commit/, moment: 'silent before' })
    const written = write(client, 1)
    await expect.poll(() => proxy.cuts).toEqual(['commit'])
    expect(await orders()).toEqual([])
    await proxy.heal()
    await written
    expect(await orders()).toEqual([1])
  })

  it('delays replies, cuts all connections, and is silent for new ones', async () => {
    const { proxy, connect } = await open()
    const client = await connect()
    proxy.delayMs(50)
    const start = performance.now()
    await client.query('select 1')
    expect(performance.now() - start).toBeGreaterThan(48)
    await proxy.heal()
    proxy.cut()
    await expect(client.query('select 1')).rejects.toThrow()
    proxy.fail('accepted and silent')
    const silent = connect()
    await expect.poll(() => proxy.connections).toBe(2)
    await proxy.heal()
    await silent
  })

  it('passes cancellations and large messages on', async () => {
    const { proxy, name, connect } = await open()
    const client = sql(proxy.urlFor(name), { max: 1, fetch_types: false })
    onTestFinished(() => client.end())
    const slow = client`select pg_sleep(30)`.execute()
    await expect.poll(() => proxy.statements).toEqual(['select pg_sleep(30)'])
    // A cancellation that reaches the server before the statement begins is lost.
    const watcher = await connect()
    const active = `select from pg_stat_activity where state = 'active' and query = 'select pg_sleep(30)'`
    await expect.poll(async () => (await watcher.query(active)).rowCount).toBe(1)
    slow.cancel()
    await expect(slow).rejects.toThrow(/canceling statement/)
    const large = 'x'.repeat(5_000_000)
    const { rows } = await (await connect()).query('select $1::text as text', [large])
    expect(rows[0].text === large).toBe(true)
  })
})

describe('startPgbouncer', () => {
  const through =
    (poolMode: 'transaction' | 'session') =>
    async (server: PostgresAddress): Promise<PostgresAddress> => {
      const pgbouncer = await startPgbouncer(server, { poolMode, size: 1 })
      onTestFinished(() => pgbouncer.stop())
      return pgbouncer
    }

  it('shares a connection in turns of a transaction, also of other roles', async () => {
    const { proxy, name, connect } = await open(through('transaction'))
    const clients = await Promise.all([connect(), connect()])
    await Promise.all(clients.map((client, id) => write(client, id)))
    expect(proxy.commits).toBe(2)
    await postgres
      .query('drop role if exists clerk')
      .then(() => postgres.query('create role clerk login'))
    const clerk = new Client({ connectionString: proxy.urlFor(name, 'clerk') })
    onTestFinished(() => clerk.end())
    await clerk.connect()
    expect((await clerk.query('select current_user')).rows).toEqual([{ current_user: 'clerk' }])
  })

  it('cuts before and after a statement on the way to it', async () => {
    const { proxy, connect, orders } = await open(through('session'))
    proxy.cutAt({ at: 3, moment: 'after' })
    await expect(connect().then((client) => write(client, 1))).rejects.toThrow()
    expect(await orders()).toEqual([1])
  })
})
