import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sqlStateOf } from '../../../src/stores/postgres/sql-state.js'
import { type PostgresServer, startPostgres } from '../../support/postgres/postgres.js'
import { ALL_RUNNERS, type AnyRunner } from './adapters/all-runners.js'
import { CREATE_PAYMENT, LIBRARIES } from './adapters/libraries.js'

const LIMITS = { acquireMs: 2000, transactionMs: 5000 }

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
  await server.query(CREATE_PAYMENT)
  await server.query('create table deferred (id text unique deferrable initially deferred)')
  await server.query("insert into payment values ('taken', 'paid')")
})
afterAll(() => server.stop())

const errorOf = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => expect.unreachable('should have been rejected'),
    (error: unknown) => error,
  )

describe.each(ALL_RUNNERS)('the errors of %s', (name, openRunner) => {
  const open = async (): Promise<AnyRunner['runner']> => {
    const { runner, end } = await openRunner(server.url, 3)
    onTestFinished(async () => {
      await end()
    })
    return runner
  }

  it('of a statement, of a dead transaction and of a COMMIT', async () => {
    const runner = await open()
    const insert = (tx: unknown, table: string, id: string) =>
      runner.query(tx, `insert into ${table} (id) values ($1)`, [id])
    let dead: unknown
    const unique = runner.transaction(async (tx) => {
      await insert(tx, 'payment', 'taken').catch(async (error: unknown) => {
        dead = await errorOf(runner.query(tx, 'select 1 as one', []))
        throw error
      })
    }, LIMITS)
    expect(sqlStateOf(await errorOf(unique))).toBe('23505')
    expect(sqlStateOf(dead)).toBe('25P02')
    const deferred = runner.transaction(async (tx) => {
      await insert(tx, 'deferred', 'a')
      await insert(tx, 'deferred', 'a')
    }, LIMITS)
    expect(sqlStateOf(await errorOf(deferred))).toBe('23505')
  })

  it('of transactions that cannot be put in order', async () => {
    const runner = await open()
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
    const runner = await open()
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
    expect(sqlStateOf(ended)).toBe(name === 'postgres.js' ? undefined : '57P01')
    expect(sqlStateOf(late)).toBeUndefined()
  })
})

it('an error of a model of Prisma', async () => {
  const prisma = await LIBRARIES['Prisma']?.(server.url, 1)
  onTestFinished(() => prisma?.close())
  const run = prisma?.runner.transaction(async (tx) => prisma.insert(tx, 'taken'), LIMITS)
  expect(sqlStateOf(await errorOf(run ?? Promise.resolve()))).toBe('23505')
})
