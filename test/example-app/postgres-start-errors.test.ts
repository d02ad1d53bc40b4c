import { describe, expect, it } from 'vitest'
import { connect } from '../../example-app/orders/connect.js'
import { createDatabase, sharedPostgres } from '../support/postgres/postgres-database.js'
import { migratedDatabase } from './migrated.js'
import { run } from './run.js'

const postgres = await sharedPostgres()

const MALFORMED = 'DATABASE_URL must be an address such as postgres://localhost:5432/orders'

/** Runs what must not start, and returns its only line. */
async function complaint(file: string, databaseUrl: string, args: string[] = []): Promise<string> {
  const running = await run(file, args, { DATABASE_URL: databaseUrl })
  const { code, stdout, stderr } = await running.finished
  expect({ code, stdout, lines: stderr.split('\n').length }).toEqual({
    code: 1,
    stdout: '',
    lines: 2,
  })
  return stderr.trimEnd()
}

const FILES = [
  ['migrate', 'migrate.ts', []],
  ['orders', 'orders/main.ts', []],
  ['start', 'start.ts', ['--once']],
] as const

describe('an address that cannot be used', () => {
  it.each([
    'foo',
    'postgres://',
    'postgres://user:a-password@localhost:port/orders',
    'postgres://user:%zz@localhost/orders',
    'postgres:/localhost/orders',
    ' ',
  ])('is never quoted: %s', async (url) => {
    await expect(connect(url)).rejects.toMatchObject({ name: 'StartError', message: MALFORMED })
  })

  it('is none at all for migrate, which needs one', async () => {
    expect(await complaint('migrate.ts', '')).toBe(
      'migrate: set DATABASE_URL, such as postgres://localhost:5432/orders',
    )
  })
})

describe.concurrent.each(FILES)('%s', (name, file, args) => {
  it('ends with one line when the address is one of another database', async () => {
    const url = 'mysql://root:a-password@localhost/orders'
    expect(await complaint(file, url, [...args])).toBe(`${name}: ${MALFORMED}`)
  })

  it('ends with one line when nobody serves there', async () => {
    const url = 'postgres://somebody:a-password@127.0.0.1:1/orders'
    expect(await complaint(file, url, [...args])).toBe(
      `${name}: Postgres is unreachable (ECONNREFUSED)`,
    )
  })
})

describe('a server that refuses', () => {
  it('a password that is wrong', async () => {
    await postgres.query("create role careful login password 'another'")
    const [settings] = await postgres.query<{ hba_file: string }>('show hba_file')
    const rules = "('host all careful all scram-sha-256'), ('host all all all trust')"
    await postgres.query(`copy (values ${rules}) to '${settings?.hba_file}'`)
    await postgres.query('select pg_reload_conf()')
    await expect(
      connect(postgres.urlFor('postgres', 'careful', 'a-password')),
    ).rejects.toMatchObject({
      name: 'StartError',
      message: 'Postgres refuses: wrong user or password (28P01)',
    })
  })

  it('a database that is not there', async () => {
    await expect(connect(postgres.urlFor('nowhere'))).rejects.toMatchObject({
      name: 'StartError',
      message: 'Postgres refuses: there is no such database (3D000)',
    })
  })
})

describe.concurrent('tables that are missing', () => {
  const emptied = async (sql: string): Promise<string> => {
    const url = await migratedDatabase(postgres)
    await postgres.query(sql, [], new URL(url).pathname.slice(1))
    return complaint('orders/main.ts', url)
  }

  it('are told in one line, all of them', async () => {
    const { url } = await createDatabase(postgres)
    expect(await complaint('orders/main.ts', url)).toBe(
      'orders: Postgres must not be used: the schema service_auth is missing: run the SQL of migration()',
    )
  })

  it('are told in one line, those of orders', async () => {
    expect(await emptied('drop table orders')).toBe(
      'orders: Postgres refuses: a table is missing; npm run migrate makes it (42P01)',
    )
  })

  it('are told in one line, those of pg-boss', async () => {
    expect(await emptied('drop schema pgboss cascade')).toBe(
      'orders: the tables of pg-boss are missing or old; npm run migrate makes them',
    )
  })
})
