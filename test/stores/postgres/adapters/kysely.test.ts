import { CamelCasePlugin, Kysely, ParseJSONResultsPlugin, PostgresDialect } from 'kysely'
import { Pool } from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { fromKysely } from '../../../../src/stores/postgres/adapters/kysely.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres.js'

interface Tables {
  payment: { id: string; note: string | null }
}

const LIMITS = { acquireMs: 1000, transactionMs: 10_000 }

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
  await server.query('create table payment (id text primary key, note text)')
})
afterAll(() => server.stop())

function openKysely(max = 3): Kysely<Tables> {
  const pool = new Pool({ connectionString: server.url, max })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const db = new Kysely<Tables>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin(), new ParseJSONResultsPlugin()],
  })
  onTestFinished(() => db.destroy())
  return db
}

describe('fromKysely', () => {
  test('commits what the handler has written by the library', async () => {
    const db = openKysely()
    const runner = fromKysely(db)
    const rows = await runner.transaction(async (tx) => {
      await tx.insertInto('payment').values({ id: 'kept' }).execute()
      return runner.query(tx, 'select id from payment where id = $1', ['kept'])
    }, LIMITS)
    expect(rows).toEqual([{ id: 'kept' }])
    expect(await server.query("select id from payment where id = 'kept'")).toHaveLength(1)
  })

  test('rolls back when the handler rejects, and rejects with the same error', async () => {
    const runner = fromKysely(openKysely())
    const failure = new Error('declined')
    const run = runner.transaction(async (tx) => {
      await tx.insertInto('payment').values({ id: 'declined' }).execute()
      throw failure
    }, LIMITS)
    await expect(run).rejects.toBe(failure)
    expect(await server.query("select id from payment where id = 'declined'")).toEqual([])
  })

  test("gives rows as the server sent them, whatever the application's plug-ins do", async () => {
    const runner = fromKysely(openKysely())
    const text = `select '{"a_b": 1}' as result, 'x' as first_name`
    const expected = [{ result: '{"a_b": 1}', first_name: 'x' }]
    expect(await runner.query(undefined, text, [])).toEqual(expected)
    expect(await runner.transaction((tx) => runner.query(tx, text, []), LIMITS)).toEqual(expected)
  })

  test('calls no handler when the connection comes too late, and rolls back', async () => {
    const db = openKysely(1)
    const runner = fromKysely(db)
    let calls = 0
    await db.connection().execute(async () => {
      const late = runner.transaction(async () => calls++, { ...LIMITS, acquireMs: 20 })
      await expect(late).rejects.toThrow('No connection within 20 ms')
    })
    await runner.query(undefined, 'select 1', [])
    expect(calls).toBe(0)
  })

  test.each([
    ['an address', 'postgres://127.0.0.1'],
    ['a pool', new Pool()],
    ['nothing', undefined],
    ['an empty object', {}],
  ])('turns down %s', (_, db) => {
    expect(() => fromKysely(db as unknown as Kysely<Tables>)).toThrow(TypeError)
  })

  test('turns down a transaction', async () => {
    await openKysely()
      .transaction()
      .execute(async (tx) => {
        expect(() => fromKysely(tx)).toThrow(
          new TypeError('fromKysely: expected a Kysely instance, no transaction'),
        )
      })
  })
})
