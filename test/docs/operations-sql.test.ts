import { expect, it } from 'vitest'
import { migration } from '../../src/stores/postgres/schema.js'
import { recordIds } from '../../src/stores/postgres/sql/statements.js'
import { createDatabase, sharedPostgres } from '../support/postgres/postgres-database.js'
import { readDocument } from './documents.js'
import { blocksOf } from './markdown.js'

const postgres = await sharedPostgres()

it('runs the SQL of the run-book', async () => {
  const { name } = await createDatabase(postgres)
  await postgres.query(migration(), [], name)
  const blocks = blocksOf('sql', await readDocument('docs/operations.md'))
  const { id, fingerprint } = recordIds('hN3vY0b2m8QfZx1uT5sWk7Lr', 'any')
  const insert =
    "insert into service_auth.idempotency values ($1, decode($2, 'hex'), null, null, now())"
  await postgres.query(insert, [id, fingerprint], name)
  const [transactions, tables, deleted] = await Promise.all(
    blocks.map((sql) => postgres.query(sql, [], name)),
  )
  expect(Object.keys(transactions?.[0] ?? {})).toContain('age')
  expect(tables?.map(({ relname }) => relname).sort()).toEqual(['idempotency', 'used_token'])
  expect(deleted).toEqual([{ expires_at: expect.anything() }])
})
