import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { fromPg } from '../../../../src/stores/postgres/adapters/pg.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres/postgres.js'

const LIMITS = { acquireMs: 1000, transactionMs: 5000 }
const ALONE = { acquireMs: 1000, statementMs: 1000 }

let server: PostgresServer
const pools: pg.Pool[] = []

beforeAll(async () => {
  server = await startPostgres()
  await server.query('create table ledger (id int primary key, note bytea)')
})
afterAll(() => server.stop())
beforeEach(() => server.query('truncate ledger'))
afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()))
})

function open(options: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url, max: 1, ...options })
  pools.push(pool)
  return pool
}

async function ledger(): Promise<unknown[]> {
  const rows = await server.query('select id from ledger order by id')
  return rows.map(({ id }) => id)
}

const statement = (text: string, ...values: unknown[]) => ({ text, values })
const insert = (id: number, note: unknown = null) =>
  statement('insert into ledger values ($1, $2)', id, note)

/** What the server was sent, each entry one write of the client. */
function writesOf(client: pg.PoolClient): string[] {
  const writes: string[] = []
  const { stream } = client.connection
  stream.on('data', () => writes.push('reply'))
  return writes
}

describe.each([
  ['exchanges', {}],
  ['pipeline', { pipeline: true }],
] as const)('fromPg by %s', (_name, options) => {
  it('commits what the handler wrote by the client itself', async () => {
    const runner = fromPg(open(options))
    const result = await runner.transaction(async (tx) => {
      await tx.query('insert into ledger values (1)')
      await tx.query('insert into ledger values ($1)', [2])
      return 'done'
    }, LIMITS)
    expect(result).toBe('done')
    expect(await ledger()).toEqual([1, 2])
  })

  it('rolls back when the work rejects, and gives a sound connection back', async () => {
    const pool = open(options)
    const runner = fromPg(pool)
    const failed = runner.transaction(async (tx) => {
      await tx.query('insert into ledger values (1)')
      throw new Error('no')
    }, LIMITS)
    await expect(failed).rejects.toThrow('no')
    expect(await ledger()).toEqual([])
    expect(pool.idleCount).toBe(1)
    expect(await runner.query(undefined, 'select 1 as one', [], ALONE)).toEqual([{ one: 1 }])
  })

  it('batches with and without values, and commits with an insert', async () => {
    const runner = fromPg(open(options))
    await runner.transaction(
      async (tx) => {
        const rows = await runner.batch?.(tx, [
          statement("set local statement_timeout = '5s'"),
          statement("select 1::int8 as eight, '\\x00ff'::bytea as bytes, null as nothing"),
        ])
        expect(rows).toEqual([[], [{ eight: '1', bytes: Buffer.from([0, 255]), nothing: null }]])
        const [, found] =
          (await runner.batch?.(tx, [insert(1), statement('select $1 as t', 'x')])) ?? []
        expect(found).toEqual([{ t: 'x' }])
        const shown = await runner.query(tx, 'show transaction_isolation', [])
        expect(shown).toEqual([{ transaction_isolation: 'serializable' }])
        await runner.commitWith?.(tx, [insert(2, Buffer.alloc(100_000, 7))])
        expect(await ledger()).toEqual([1, 2])
      },
      { ...LIMITS, isolation: 'serializable' },
    )
  })

  it('does not commit when the insert before the commit fails', async () => {
    const runner = fromPg(open(options))
    const failed = runner.transaction(async (tx) => {
      await runner.batch?.(tx, [insert(1)])
      await runner.commitWith?.(tx, [insert(1)])
    }, LIMITS)
    await expect(failed).rejects.toMatchObject({ code: '23505' })
    expect(await ledger()).toEqual([])
  })

  it('takes a commit that rolled back for no success', async () => {
    const runner = fromPg(open(options))
    const failed = runner.transaction(async (tx) => {
      await tx.query('insert into ledger values (1)')
      await tx.query('select 1 / 0').catch(() => {})
    }, LIMITS)
    await expect(failed).rejects.toThrow('ROLLBACK')
    expect(await ledger()).toEqual([])
  })
})

describe('fromPg', () => {
  it('takes three round trips for a transaction of three statements', async () => {
    const pool = open()
    const runner = fromPg(pool)
    const warm = await pool.connect()
    const writes = writesOf(warm)
    warm.release()
    await runner.transaction(async (tx) => {
      await runner.batch?.(tx, [statement('select 1'), statement('select 2')])
      await tx.query('insert into ledger values (1)')
      await runner.commitWith?.(tx, [insert(2)])
    }, LIMITS)
    expect(writes).toHaveLength(3)
  })

  it('gives up waiting for a connection, and gives a late one back', async () => {
    const pool = open()
    const runner = fromPg(pool)
    const held = await pool.connect()
    let isCalled = false
    const waiting = runner.transaction(
      async () => {
        isCalled = true
      },
      { ...LIMITS, acquireMs: 20 },
    )
    await expect(waiting).rejects.toThrow('20 ms')
    const alone = runner.query(undefined, 'insert into ledger values (1)', [], {
      acquireMs: 20,
      statementMs: 100,
    })
    await expect(alone).rejects.toThrow('20 ms')
    held.release()
    await runner.query(undefined, 'select 1', [], ALONE)
    expect(pool.idleCount).toBe(1)
    expect(isCalled).toBe(false)
    expect(await ledger()).toEqual([])
  })

  it('destroys a connection whose statement outlives its time', async () => {
    const pool = open()
    const runner = fromPg(pool)
    const slow = runner.query(undefined, 'select pg_sleep(30)', [], {
      acquireMs: 1000,
      statementMs: 50,
    })
    await expect(slow).rejects.toThrow('50 ms')
    expect(pool.totalCount).toBe(0)
    expect(await runner.query(undefined, 'select 1 as one', [], ALONE)).toEqual([{ one: 1 }])
  })

  it('destroys a connection that cannot be rolled back in time', async () => {
    const pool = open()
    const runner = fromPg(pool)
    const failed = runner.transaction(async (tx) => {
      tx.query('select pg_sleep(30)').catch(() => {})
      throw new Error('time is over')
    }, LIMITS)
    await expect(failed).rejects.toThrow('time is over')
    expect(pool.totalCount).toBe(0)
  })

  it.each([
    ['a client', new pg.Client()],
    ['an address', 'postgres://127.0.0.1'],
    ['nothing', undefined],
  ])('refuses %s', (_name, pool) => {
    expect(() => fromPg(pool as unknown as pg.Pool)).toThrow(TypeError)
  })

  it('rejects when the pool has ended', async () => {
    const pool = new pg.Pool({ connectionString: server.url })
    const runner = fromPg(pool)
    await pool.end()
    await expect(runner.transaction(async () => {}, LIMITS)).rejects.toThrow(/end/)
    await expect(runner.query(undefined, 'select 1', [], ALONE)).rejects.toThrow(/end/)
  })
})
