import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
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

describe('fromPg', () => {
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
    const query = vi.spyOn(held, 'query')
    held.release()
    await runner.query(undefined, 'select 1', [], ALONE)
    expect(query.mock.calls).toEqual([['select 1', undefined]])
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
})
