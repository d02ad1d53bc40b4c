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

  it('takes settings, and says what Postgres says when it does not start', async () => {
    const postgres = await start({ settings: { application_name: "it's a \\ test" } })
    expect(await postgres.query('show application_name')).toEqual([
      { application_name: "it's a \\ test" },
    ])
    await expect(startPostgres({ settings: { nonsense: 'yes' } })).rejects.toThrow(/nonsense/)
  })
})
