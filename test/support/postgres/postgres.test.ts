import { afterEach, describe, expect, it } from 'vitest'
import { type PostgresOptions, type PostgresServer, startPostgres } from './postgres.js'

const started: PostgresServer[] = []

async function start(options?: PostgresOptions): Promise<PostgresServer> {
  const postgres = await startPostgres(options)
  started.push(postgres)
  return postgres
}

afterEach(async () => {
  await Promise.all(started.splice(0).map((postgres) => postgres.stop()))
})

describe('startPostgres', () => {
  it('starts servers of both versions that know nothing of each other', async () => {
    const [one, other] = await Promise.all([start(), start({ version: 18 })])
    await one.query('create table orders (id int)')
    expect(await one.query('select 1; select count(*)::int from orders')).toEqual([{ count: 0 }])
    await expect(other.query('select * from orders')).rejects.toThrow(/does not exist/)
    const [shown] = await other.query('show server_version')
    expect(shown?.['server_version']).toMatch(/^18/)
    expect(one.major).toBeGreaterThanOrEqual(15)
  })

  it('restarts on the same port with its data', async () => {
    const postgres = await start()
    const { port, pid } = postgres
    await postgres.query('create table orders (id int)')
    await postgres.restart()
    expect(postgres).toMatchObject({ port })
    expect(postgres.pid).not.toBe(pid)
    expect(await postgres.query('select * from orders')).toEqual([])
  })

  it.each(['stopImmediate', 'kill'] as const)('recovers after %s', async (end) => {
    const postgres = await start()
    await postgres.query('create table orders (id int)')
    await postgres[end]()
    await expect(postgres.query('select 1')).rejects.toThrow(/ECONNREFUSED/)
    await postgres.restart()
    expect(await postgres.query('select * from orders')).toEqual([])
    expect(await postgres.log()).toContain('automatic recovery in progress')
  })

  it('answers only after it is resumed when it was paused', async () => {
    const postgres = await start()
    const slow = postgres.query('select pg_sleep(0.1)')
    postgres.pause()
    let answered = false
    const reply = postgres.query('select 1 as one').finally(() => {
      answered = true
    })
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(answered).toBe(false)
    postgres.resume()
    expect(await reply).toEqual([{ one: 1 }])
    await slow
  })

  it('takes settings, and says what Postgres says when it does not start', async () => {
    const postgres = await start({ settings: { application_name: "it's a \\ test" } })
    expect(await postgres.query('show application_name')).toEqual([
      { application_name: "it's a \\ test" },
    ])
    await expect(startPostgres({ settings: { nonsense: 'yes' } })).rejects.toThrow(/nonsense/)
  })
})
