import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sqlStateOf } from '../../../src/stores/postgres/sql-state.js'
import { type PostgresServer, startPostgres } from '../../support/postgres/postgres.js'
import {
  ADAPTERS,
  type Adapter,
  CREATE_PAYMENT,
  type OpenAdapter,
  PRISMA,
} from './adapters/libraries.js'

const LIMITS = { acquireMs: 2000, transactionMs: 5000 }

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
  await server.query(CREATE_PAYMENT)
  await server.query("insert into payment values ('taken', 'paid')")
})
afterAll(() => server.stop())

const errorOf = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => expect.unreachable('should have been rejected'),
    (error: unknown) => error,
  )

async function open(adapter: Adapter): Promise<OpenAdapter> {
  const opened = await adapter.open(server.url, 3)
  onTestFinished(async () => void (await opened.close()))
  return opened
}

describe.each(ADAPTERS)('the errors of $name', (adapter) => {
  it('of a dead transaction', async () => {
    const { runner, insert } = await open(adapter)
    const run = runner.transaction(async (tx) => {
      await errorOf(insert(tx, 'taken'))
      await runner.query(tx, 'select 1 as one', [])
    }, LIMITS)
    expect(sqlStateOf(await errorOf(run))).toBe('25P02')
  })

  it('of transactions that cannot be put in order', async () => {
    const { runner } = await open(adapter)
    const raise = (tx: unknown) =>
      runner.query(tx, "update payment set note = note || '.' where id = 'taken'", [])
    const run = runner.transaction(
      async (tx) => {
        await runner.query(tx, 'select note from payment', [])
        await raise(undefined)
        await raise(tx)
      },
      { ...LIMITS, isolation: 'serializable' },
    )
    expect(sqlStateOf(await errorOf(run))).toBe('40001')
  })

  it('of a connection that the server ends, and of one that is lost', async () => {
    const { runner } = await open(adapter)
    let ended: unknown
    let late: unknown
    const run = runner.transaction(async (tx) => {
      const ending = 'select pg_terminate_backend(pg_backend_pid())::text as ended'
      ended = await errorOf(runner.query(tx, ending, []))
      await delay(20)
      late = await errorOf(runner.query(tx, 'select 1 as one', []))
      throw ended
    }, LIMITS)
    await errorOf(run)
    // What postgres.js has read before the connection ends it does not tell.
    expect(sqlStateOf(ended)).toBe(adapter.name === 'postgres.js' ? undefined : '57P01')
    expect(sqlStateOf(late)).toBeUndefined()
  })
})

it('an error of a model of Prisma', async () => {
  const { runner, insert } = await open(PRISMA)
  const run = runner.transaction((tx) => insert(tx, 'taken'), LIMITS)
  expect(sqlStateOf(await errorOf(run))).toBe('23505')
})
