import { Client } from 'pg'
import { expect, it } from 'vitest'
import { sharedPostgres } from '../support/postgres/postgres-database.js'
import { migratedDatabase } from './migrated.js'
import { run } from './run.js'

const postgres = await sharedPostgres()

const OWN_STEPS = [
  ['connection ends before COMMIT', '503'],
  ['the retry writes it', '201'],
  ['billing is notified, once', '200'],
]

async function ask<Row>(connectionString: string, text: string): Promise<Row[]> {
  const client = new Client({ connectionString })
  await client.connect()
  const { rows } = await client.query(text)
  await client.end()
  return rows
}

it('goes as expected on Postgres, before Redis: one order, of which billing is told once', async () => {
  const url = await migratedDatabase(postgres)
  // The address of Redis would end the story if it counted.
  const story = await run('start.ts', ['--once'], { DATABASE_URL: url, REDIS_URL: 'none' })
  const { code, stdout, stderr } = await story.finished
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain('store: Postgres')
  expect(stdout).toContain('20 of 20 steps went as expected')
  const rows = stdout.split('\n').map((line) => line.split(/ {2,}/))
  const own = rows.flatMap(([, title, , status]) =>
    OWN_STEPS.some(([known]) => known === title) ? [[title, status]] : [],
  )
  expect(own).toEqual(OWN_STEPS)
  // The chair is older than the story: nobody was told of it.
  expect(await ask(url, 'select item from orders order by item')).toEqual([
    { item: 'chair' },
    { item: 'desk' },
    { item: 'lamp' },
    { item: 'lamp' },
  ])
  const jobs = await ask(url, "select state::text from pgboss.job where name = 'order-placed'")
  expect(jobs).toEqual([{ state: 'completed' }, { state: 'completed' }, { state: 'completed' }])
})

it('makes its tables as often as it is asked to, and says so in one line', async () => {
  const url = await migratedDatabase(postgres)
  const again = await run('migrate.ts', [], { DATABASE_URL: url })
  expect(await again.finished).toEqual({
    code: 0,
    stdout: 'migrate: the tables of orders, express-service-auth and pg-boss are there\n',
    stderr: '',
  })
})
