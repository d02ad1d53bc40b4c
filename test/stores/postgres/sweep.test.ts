import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { fromPg } from '../../../src/stores/postgres/adapters/pg.js'
import { migration } from '../../../src/stores/postgres/schema.js'
import { integerLiteral } from '../../../src/stores/postgres/sql/literals.js'
import { schemaLock } from '../../../src/stores/postgres/sql/statements.js'
import { sweep, sweepEvery } from '../../../src/stores/postgres/sweep.js'
import { sharedPostgres } from '../../support/postgres/postgres-database.js'
import { until } from '../../support/until.js'
import { contextOf, openPool } from './store-parts.js'

const server = await sharedPostgres()
await server.query(migration())
const pool = openPool(server.url)
afterAll(() => pool.end())
const runner = fromPg(pool)
const place = contextOf(runner)

const TABLES = ['idempotency', 'used_token']
const LATER = "now() + interval '1 day'"

async function fill(rows: number, expiresAt: string): Promise<void> {
  await pool.query(`insert into service_auth.idempotency
    select gen_random_uuid(), '\\x00', null, null, ${expiresAt} from generate_series(1, ${rows}) g`)
  await pool.query(`insert into service_auth.used_token
    select gen_random_uuid(), ${expiresAt} from generate_series(1, ${rows}) g`)
}

const expired = (rows: number): Promise<void> => fill(rows, "now() - g * interval '1 s'")

async function left(): Promise<number[]> {
  const counts = TABLES.map((table) =>
    pool.query(`select count(*)::int from service_auth.${table}`),
  )
  return (await Promise.all(counts)).map(({ rows }) => rows[0].count)
}

afterEach(async () => {
  for (const table of TABLES) await pool.query(`truncate service_auth.${table}`)
})

describe('sweep', () => {
  it('deletes what has expired in both tables, and nothing else', async () => {
    await expired(25)
    await fill(5, LATER)
    expect(await sweep(place, { batch: 10 })).toBe(50)
    expect(await left()).toEqual([5, 5])
    expect(await sweep(place)).toBe(0)
  })

  it('deletes the oldest first, up to the limit of a table', async () => {
    await expired(25)
    expect(await sweep(place, { batch: 10, limit: 15 })).toBe(30)
    const { rows } = await pool.query(
      "select bool_and(expires_at > now() - interval '12 s') as young from service_auth.used_token",
    )
    expect(rows).toEqual([{ young: true }])
  })

  it('leaves the work to another who sweeps', async () => {
    await expired(3)
    const other = await pool.connect()
    const lock = integerLiteral(schemaLock('sweep', 'service_auth'))
    await other.query('begin')
    await other.query(`select pg_advisory_xact_lock(${lock})`)
    expect(await sweep(place)).toBe(0)
    await other.query('rollback')
    other.release()
    expect(await sweep(place)).toBe(6)
  })

  it('does not hold up who uses the table', async () => {
    await expired(10)
    const client = await pool.connect()
    await client.query('begin; select count(*) from service_auth.idempotency')
    expect(await sweep(place)).toBe(20)
    await client.query('rollback')
    client.release()
  })
})

describe('a sweeper', () => {
  const stops: (() => void)[] = []
  afterEach(() => stops.splice(0).forEach((stop) => void stop()))
  const start = (sweepOnce: () => Promise<number>): (() => void) => {
    const stop = sweepEvery(0.02, sweepOnce)
    stops.push(stop)
    return stop
  }

  async function eventsOf(sweepOnce: () => Promise<number>): Promise<unknown[]> {
    const events: unknown[] = []
    const listen = (event: unknown): void => void events.push(event)
    subscribe('express-service-auth:postgres', listen)
    const stop = start(sweepOnce)
    await until('two events', async () => events.length > 1)
    stop()
    unsubscribe('express-service-auth:postgres', listen)
    return events
  }

  it('tells what it has swept', async () => {
    await expired(4)
    const [event] = await eventsOf(() => sweep(place))
    expect(event).toEqual({ type: 'swept', deleted: 8, durationMs: expect.any(Number) })
    expect(Object.isFrozen(event)).toBe(true)
  })

  it('tells that it failed, and tries again', async () => {
    // The sweeper before may still publish the end of its last sweep.
    const events = await eventsOf(() => sweep(contextOf(runner, 'missing')))
    expect(events).toContainEqual({ type: 'sweep_failed', sqlState: '42P01' })
    const lost = await eventsOf(() => Promise.reject(new Error('lost')))
    expect(lost).toContainEqual({ type: 'sweep_failed' })
  })

  it('works in the context of its owner, one sweep after another, until it is closed', async () => {
    const context = new AsyncLocalStorage<string>()
    const seen: (string | undefined)[] = []
    const stop = context.run('owner', () =>
      start(async () => {
        seen.push(context.getStore())
        context.enterWith('somebody')
        return 0
      }),
    )
    await until('three sweeps', async () => seen.length >= 3)
    stop()
    expect(new Set(seen)).toEqual(new Set(['owner']))
    const { length } = seen
    await new Promise((resolve) => setTimeout(resolve, 60))
    expect(seen).toHaveLength(length)
  })
})
