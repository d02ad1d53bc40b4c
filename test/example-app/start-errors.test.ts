import { afterAll, beforeAll, expect, it } from 'vitest'
import { listen, type RunningServer } from '../../example-app/listen.js'
import { createDatabase, sharedPostgres } from '../support/postgres/postgres-database.js'
import { knowSecret } from '../support/secret-search/index.js'
import { migratedDatabase } from './migrated.js'
import { run } from './run.js'

const postgres = await sharedPostgres()
const NOBODY = 'http://127.0.0.1:2'
knowSecret('a password', 'a-password')

let taken: RunningServer
beforeAll(async () => {
  taken = await listen((_, response) => response.writeHead(404).end())
})
afterAll(() => taken.close())

/** Runs a service that must not start, and returns its only line. */
async function complaint(file: string, env: Record<string, string>, args: string[] = []) {
  const { code, stdout, stderr } = await (await run(file, args, env)).finished
  expect({ code, stdout, lines: stderr.split('\n').length }).toEqual({
    code: 1,
    stdout: '',
    lines: 2,
  })
  expect(stderr).not.toContain('a-password')
  return stderr.trimEnd()
}

it.each([
  ['start.ts', 'ORDERS_PORT', ['--once']],
  ['orders/main.ts', 'ORDERS_PORT', []],
])('%s ends with one line when the port of its %s is in use', async (file, name, args) => {
  const { port } = new URL(taken.url)
  expect(await complaint(file, { [name]: port }, args)).toMatch(
    new RegExp(`^\\w+: port ${port} cannot be used \\(EADDRINUSE\\); set ${name} to another one$`),
  )
})

it.each<[string, Record<string, string>, string]>([
  ['orders/main.ts', { ORDERS_PORT: '70000' }, 'orders: ORDERS_PORT must be'],
  ['billing/main.ts', { ORDERS_URL: 'http://a/b' }, 'billing: ORDERS_URL must be'],
  ['billing/main.ts', { CORE_URL: NOBODY }, 'billing: no service token: core_unreachable'],
  ['orders/main.ts', { REDIS_URL: 'redis://:a-password@localhost:port' }, 'REDIS_URL must be'],
  ['start.ts', { REDIS_URL: 'redis://:a-password@127.0.0.1:1' }, 'Redis at 127.0.0.1:1 cannot'],
  ['migrate.ts', {}, 'migrate: set DATABASE_URL'],
  ['start.ts', { DATABASE_URL: 'mysql://a:a-password@localhost/o' }, 'DATABASE_URL must be'],
  ['migrate.ts', { DATABASE_URL: 'postgres://a:a-password@127.0.0.1:1/o' }, '(ECONNREFUSED)'],
])('%s ends with one line for %j', async (file, env, line) => {
  expect(await complaint(file, env)).toContain(line)
})

it('the story ends with one line for a flag that it does not know', async () => {
  expect(await complaint('start.ts', {}, ['--onec'])).toBe(
    'start: unknown option --onec; there are --once and --no-page',
  )
})

it('orders ends with one line when tables are missing', async () => {
  const { url } = await createDatabase(postgres)
  expect(await complaint('orders/main.ts', { DATABASE_URL: url })).toBe(
    'orders: Postgres must not be used: the schema service_auth is missing: run the SQL of migration()',
  )
  const emptied = await migratedDatabase(postgres)
  await postgres.query('drop table orders', [], new URL(emptied).pathname.slice(1))
  expect(await complaint('orders/main.ts', { DATABASE_URL: emptied })).toBe(
    'orders: Postgres cannot serve (42P01); npx tsx example-app/migrate.ts makes the tables',
  )
})
