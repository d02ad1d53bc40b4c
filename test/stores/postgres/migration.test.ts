import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fromPg } from '../../../src/stores/postgres/adapters/pg.js'
import type { Statement } from '../../../src/stores/postgres/runner.js'
import { migration } from '../../../src/stores/postgres/schema.js'
import {
  createStatements,
  recordIds,
  tokenIds,
} from '../../../src/stores/postgres/sql/statements.js'
import { sweep } from '../../../src/stores/postgres/sweep.js'
import { createDatabase, sharedPostgres } from '../../support/postgres/postgres-database.js'
import { contextOf, openPool } from './store-parts.js'

const statements = createStatements('service_auth')
const KEEPING = { result: Buffer.from('{}'), retentionMs: -1, usedToken: false }
const PEOPLE = { appRole: 'app', sweepRole: 'sweeper' }
const ROWS = 20_000
const RESULT = 34

describe.each([15, 18] as const)('on Postgres %i', async (version) => {
  const server = await sharedPostgres(version)
  await server.query('create role app login; create role sweeper login; create role nobody login')

  it('makes the tables of the contract, and says of which version they are', async () => {
    const { name } = await createDatabase(server)
    await server.query(migration(), [], name)
    const columns = await server.query(
      `select table_name || '.' || column_name || ' ' || data_type ||
        case is_nullable when 'YES' then ' null' else '' end as told
      from information_schema.columns where table_schema = 'service_auth'
      order by table_name, ordinal_position`,
      [],
      name,
    )
    expect(columns.map(({ told }) => told)).toEqual([
      'idempotency.id uuid',
      'idempotency.fingerprint bytea',
      'idempotency.result bytea null',
      'idempotency.run xid8 null',
      'idempotency.expires_at timestamp with time zone',
      'used_token.id uuid',
      'used_token.expires_at timestamp with time zone',
    ])
    const [told] = await server.query(
      `select obj_description('service_auth'::regnamespace, 'pg_namespace') as comment,
        (select array_agg(distinct reloptions::text) from pg_class
          where relnamespace = 'service_auth'::regnamespace and relkind = 'r') as options,
        (select count(*)::int from pg_indexes where schemaname = 'service_auth'
          and indexdef like '%(expires_at)') as indexes`,
      [],
      name,
    )
    expect(told).toEqual({
      comment: 'express-service-auth 2',
      options: ['{autovacuum_vacuum_scale_factor=0.02}'],
      indexes: 2,
    })
  })

  it('may be run again, at once, and inside of a transaction, and keeps what is there', async () => {
    const { name, url } = await createDatabase(server)
    await Promise.all([1, 2, 3].map(() => server.query(migration(PEOPLE), [], name)))
    const pool = openPool(url)
    await run(pool, statements.insertRecordSeparately(recordIds('k', 'f'), KEEPING))
    await run(pool, { text: migration(PEOPLE), values: [] })
    const client = await pool.connect()
    await client.query('begin')
    await client.query(migration({ schema: 'second' }))
    await client.query('rollback')
    client.release()
    const { rows } = await pool.query("select to_regnamespace('second') as second")
    expect(rows).toEqual([{ second: null }])
    expect(await run(pool, statements.findRecord(recordIds('k', 'f')))).toHaveLength(1)
    await pool.end()
  })

  it.each([1, 3])('refuses a schema of version %i, and says what to do', async (version) => {
    const { name } = await createDatabase(server)
    await server.query(
      `create schema other; comment on schema other is 'express-service-auth ${version}'`,
      [],
      name,
    )
    await expect(server.query(migration({ schema: 'other' }), [], name)).rejects.toMatchObject({
      message: `the schema other is of version ${version} of express-service-auth, and this is version 2`,
      hint: expect.stringContaining('Drop the schema once its records have expired'),
    })
    expect(
      await server.query("select 1 from pg_tables where schemaname = 'other'", [], name),
    ).toEqual([])
  })

  it('refuses a schema of somebody else', async () => {
    const { name } = await createDatabase(server)
    await expect(server.query(migration({ schema: 'public' }), [], name)).rejects.toThrow(
      'not one of express-service-auth',
    )
    expect(
      await server.query("select 1 from pg_tables where schemaname = 'public'", [], name),
    ).toEqual([])
  })

  it('grants what serving needs, and what sweeping needs, and nothing else to anybody', async () => {
    const { name } = await createDatabase(server)
    await server.query(migration(PEOPLE), [], name)
    const [app, sweeper, nobody] = ['app', 'sweeper', 'nobody'].map((role) =>
      openPool(server.urlFor(name, role)),
    ) as [Pool, Pool, Pool]
    const ids = recordIds('granted', 'f')
    const token = { ids: tokenIds('begun'), ttlMs: 60_000 }
    const opening = { transactionMs: 1000, token }
    for (const statement of [
      statements.begin(ids, opening),
      statements.insertRecordSeparately(ids, KEEPING),
      statements.findRecord(ids),
      statements.consume({ ids: tokenIds('granted'), ttlMs: -1 }),
    ]) {
      await run(app, statement)
      await refused(nobody, statement.text.replaceAll('$1', "'x'"), statement)
    }
    for (const text of [
      'update service_auth.idempotency set result = null',
      'delete from service_auth.idempotency',
      'select from service_auth.used_token for update',
      'truncate service_auth.used_token',
      'create table service_auth.more ()',
    ]) {
      await refused(app, text)
      await refused(nobody, text)
    }
    for (const text of [
      'select result from service_auth.idempotency',
      'insert into service_auth.used_token values (gen_random_uuid(), now())',
      'update service_auth.used_token set expires_at = now()',
    ]) {
      await refused(sweeper, text)
    }
    expect(await sweep(contextOf(fromPg(sweeper)))).toBe(2)
    await Promise.all([app, sweeper, nobody].map((pool) => pool.end()))
  })
})

type Pool = ReturnType<typeof openPool>

const run = async (pool: Pool, { text, values }: Statement) =>
  (await pool.query(text, [...values])).rows

async function refused(pool: Pool, text: string, statement?: Statement): Promise<void> {
  const asked = statement ? run(pool, statement) : pool.query(text)
  // What asks for no table needs no right.
  if (statement && !text.includes('service_auth')) return void (await asked)
  await expect(asked, text).rejects.toMatchObject({ code: '42501' })
}

it.each([
  ['schema', { schema: 'Service' }],
  ['appRole', { appRole: 'a"; drop role b' }],
  ['appRole', { appRole: 'public' }],
  ['sweepRole', { sweepRole: 'x'.repeat(64) }],
  ['sweeprole', { sweeprole: 'sweeper' }],
])('refuses a wrong %s', (option, options) => {
  expect(() => migration(options as never)).toThrow(TypeError)
  expect(() => migration(options as never)).toThrow(option)
})

it('takes names that are words of SQL', () => {
  expect(
    migration({ schema: 'select', appRole: 'user', sweepRole: `_${randomUUID().slice(0, 4)}` }),
  ).toContain('"select"')
})

it('stays below the size that is promised', async () => {
  const server = await sharedPostgres()
  const { name } = await createDatabase(server)
  await server.query(migration(), [], name)
  const [sizes] = await server
    .query(
      `insert into service_auth.used_token
      select md5(g::text)::uuid, now() + g * interval '1 ms' from generate_series(1, ${ROWS}) g;
    insert into service_auth.idempotency
      select md5(g::text)::uuid, decode(md5(g::text), 'hex'), decode(repeat('61', ${RESULT}), 'hex'),
        g::text::xid8, now() + g * interval '1 ms' from generate_series(1, ${ROWS}) g`,
      [],
      name,
    )
    .then(() =>
      server.query(
        `select pg_total_relation_size('service_auth.idempotency') / ${ROWS}.0 - ${RESULT} as record,
        pg_total_relation_size('service_auth.used_token') / ${ROWS}.0 as token`,
        [],
        name,
      ),
    )
  expect(Number(sizes?.['record'])).toBeLessThanOrEqual(200)
  expect(Number(sizes?.['token'])).toBeLessThanOrEqual(120)
})
