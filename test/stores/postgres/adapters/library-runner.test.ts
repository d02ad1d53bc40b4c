import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sqlStateOf } from '../../../../src/stores/postgres/sql-state.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres/postgres.js'
import { until } from '../../../support/until.js'
import { CREATE_PAYMENT, LIBRARIES, type OpenLibrary } from './libraries.js'

const LIMITS = { acquireMs: 2000, transactionMs: 10_000 }

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
  await server.query(CREATE_PAYMENT)
  await server.query('create table bytes (id text primary key, body bytea)')
  await server.query(
    'create table line (id text primary key, payment text references payment deferrable initially deferred)',
  )
})
afterAll(() => server.stop())

const isStored = async (id: string): Promise<boolean> =>
  (await server.query('select 1 from payment where id = $1', [id])).length === 1

async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => expect.unreachable('should have been rejected'),
    (error: unknown) => error,
  )
}

describe.each(Object.entries(LIBRARIES))('on %s', (name, openLibrary) => {
  const open = async (max = 3): Promise<OpenLibrary> => {
    const library = await openLibrary(server.url, max)
    onTestFinished(() => library.close())
    return library
  }

  it('commits what the handler has written by the library', async () => {
    const { runner, insert } = await open()
    const rows = await runner.transaction(async (tx) => {
      await insert(tx, `${name} kept`)
      return runner.query(tx, 'select id from payment where id = $1', [`${name} kept`])
    }, LIMITS)
    expect(rows).toEqual([{ id: `${name} kept` }])
    expect(await isStored(`${name} kept`)).toBe(true)
  })

  it('rolls back when the handler rejects, and rejects with the same error', async () => {
    const { runner, insert } = await open()
    const failure = new Error('declined')
    const run = runner.transaction(async (tx) => {
      await insert(tx, `${name} declined`)
      throw failure
    }, LIMITS)
    expect(await rejection(run)).toBe(failure)
    expect(await isStored(`${name} declined`)).toBe(false)
  })

  it('gives rows of text as the server sent them, of every kind of statement', async () => {
    const { runner } = await open()
    const text = `select '{"a_b": 1}' as result, '2020-01-01' as day, '007' as number`
    const expected = [{ result: '{"a_b": 1}', day: '2020-01-01', number: '007' }]
    expect(await runner.query(undefined, text, [])).toEqual(expected)
    expect(await runner.query(undefined, text, [], { acquireMs: 2000, statementMs: 2000 })).toEqual(
      expected,
    )
    const inside = await runner.transaction(async (tx) => {
      expect(await runner.query(tx, text, [])).toEqual(expected)
      await runner.query(tx, 'insert into payment values ($1)', [`${name} row`])
      return [
        await runner.query(tx, `update payment set note = 'b' where id = $1 returning note`, [
          `${name} row`,
        ]),
        await runner.query(tx, 'delete from payment where id = $1 returning id', [`${name} row`]),
        await runner.query(tx, 'delete from payment where false', []),
      ]
    }, LIMITS)
    expect(inside).toEqual([[{ note: 'b' }], [{ id: `${name} row` }], []])
  })

  it('stores the bytes that it is given', async () => {
    const { runner } = await open()
    const all = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const large = Buffer.alloc(256 * 1024, all)
    const view = new Uint8Array(large.buffer, large.byteOffset + 3, 300)
    for (const bytes of [new Uint8Array(), Buffer.from(all), all, view, large]) {
      const values = ['x', bytes]
      await runner.transaction(async (tx) => {
        await runner.query(tx, 'insert into bytes values ($1, $2)', values)
      }, LIMITS)
      const [row] = await server.query<{ body: Buffer }>('delete from bytes returning body')
      expect(Buffer.compare(row?.body ?? Buffer.alloc(1), bytes)).toBe(0)
    }
  })

  it('binds strings, numbers and booleans', async () => {
    const { runner } = await open()
    const text = `select concat_ws(' ', $1::text, $2::int, $3::double precision, $4::boolean, $5::text) as bound`
    const values = [`'"\\$1 %s é\u{1f600}`, 2_000_000_000, 0.5, true, '2020-01-01T00:00:00Z']
    const bound = `'"\\$1 %s é\u{1f600} 2000000000 0.5 t 2020-01-01T00:00:00Z`
    expect(await runner.query(undefined, text, values)).toEqual([{ bound }])
    expect(await runner.transaction((tx) => runner.query(tx, text, values), LIMITS)).toEqual([
      { bound },
    ])
  })

  it('calls no handler when the connection comes too late, and sends no statement', async () => {
    const { runner, hold } = await open(1)
    let calls = 0
    await hold(async () => {
      const late = runner.transaction(async () => calls++, { ...LIMITS, acquireMs: 30 })
      const statement = runner.query(
        undefined,
        'insert into payment values ($1)',
        [`${name} late`],
        {
          acquireMs: 30,
          statementMs: 1000,
        },
      )
      const startedAt = performance.now()
      const errors = await Promise.all([rejection(late), rejection(statement)])
      expect(performance.now() - startedAt).toBeLessThan(5000)
      expect(errors.map(sqlStateOf)).toEqual([undefined, undefined])
    })
    await runner.query(undefined, 'select 1', [])
    expect(calls).toBe(0)
    expect(await isStored(`${name} late`)).toBe(false)
  })

  it.each(['read committed', 'repeatable read', 'serializable'] as const)(
    'begins with %s',
    async (isolation) => {
      const { runner } = await open()
      const rows = await runner.transaction(
        (tx) => runner.query(tx, 'show transaction_isolation', []),
        { ...LIMITS, isolation },
      )
      expect(rows).toEqual([{ transaction_isolation: isolation }])
    },
  )

  it('fails where the handler has swallowed the error of a statement of its own', async () => {
    const { runner, insert, execute } = await open()
    const run = runner.transaction(async (tx) => {
      await insert(tx, `${name} dead`)
      await execute(tx, 'select * from no_such_table').catch(() => {})
    }, LIMITS)
    expect(sqlStateOf(await rejection(run))).toBe('25P02')
    expect(await isStored(`${name} dead`)).toBe(false)
  })

  it('does not wait for a rollback that stands behind a statement', async () => {
    const { runner, execute } = await open()
    const failure = new Error('the time is over')
    const startedAt = performance.now()
    const run = runner.transaction(async (tx) => {
      execute(tx, 'select pg_sleep(4)::text').catch(() => {})
      await delay(20)
      throw failure
    }, LIMITS)
    expect(await rejection(run)).toBe(failure)
    expect(performance.now() - startedAt).toBeLessThan(3500)
  })

  it('outlives connections that the server ends', async () => {
    const { runner, insert } = await open(2)
    const error = await rejection(
      runner.transaction(async (tx) => {
        await runner.query(tx, 'select 1', [])
        await terminateAll()
        await delay(50)
        await insert(tx, `${name} cut`)
      }, LIMITS),
    )
    expect(sqlStateOf(error)).toBeUndefined()
    await runner.query(undefined, 'select 1', [])
    await terminateAll()
    await until('the pool has dropped it', () =>
      runner.query(undefined, 'select 1', []).then(
        () => true,
        () => false,
      ),
    )
    expect(await isStored(`${name} cut`)).toBe(false)
  })
})

const terminateAll = (): Promise<unknown> =>
  server.query(
    "select pg_terminate_backend(pid, 5000) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'",
  )
