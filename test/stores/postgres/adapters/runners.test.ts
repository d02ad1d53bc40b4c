import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { guardTransaction, TransactionEndedError } from '../../../../src/stores/postgres/guard.js'
import {
  type FirstStatement,
  type OpeningLimits,
  SENDING_FIRST,
  type TransactionRunner,
} from '../../../../src/stores/postgres/runner.js'
import { transactionRunnerCases } from '../../../../src/testing/transaction-runner/transaction-runner-cases.js'
import { type PostgresServer, startPostgres } from '../../../support/postgres/postgres.js'
import { startPostgresProxy } from '../../../support/postgres/postgres-proxy.js'
import { testCases } from '../../../support/stores/store-cases.js'
import { until } from '../../../support/until.js'
import {
  ADAPTERS,
  type Adapter,
  CREATE_PAYMENT,
  insertPayment,
  type OpenAdapter,
  PG,
  PG_BY_PIPELINE,
} from './libraries.js'

const LIMITS = { acquireMs: 2000, transactionMs: 10_000 }
/** A library may wait before it connects again. */
const ALONE = { acquireMs: 10_000, statementMs: 2000 }
/** One in five of them took the connection of postgres.js for good. */
const ROUNDS_OF_LOSS = 20
const POOL_SIZE = 4

/**
 * `begin`, the opening, a handler's statement, the record and `commit`. pg sends the first two together; postgres.js
 * ends an empty transaction.
 */
const ROUND_TRIPS: Record<string, number> = { pg: 4, 'postgres.js': 6 }
const FIVE = 5

let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres()
  await server.query(CREATE_PAYMENT)
})
afterAll(() => server.stop())
beforeEach(() => server.query('truncate payment'))

async function open(adapter: Adapter, max = 1, url = server.url): Promise<OpenAdapter> {
  const opened = await adapter.open(url, max)
  onTestFinished(async () => void (await opened.close()))
  return opened
}

async function payments(): Promise<unknown[]> {
  const rows = await server.query('select id from payment order by id')
  return rows.map(({ id }) => id)
}

/** As the store does. */
async function record(runner: TransactionRunner<unknown>, tx: unknown, id: string): Promise<void> {
  await runner.query(tx, 'insert into payment values ($1)', [id])
}

/** Those whose nested transactions, savepoints and losses are tried. */
const WITH_SAVEPOINTS = ['pg', 'postgres.js', 'drizzle']

describe.each([...ADAPTERS, PG_BY_PIPELINE])('a runner on $name', (adapter) => {
  describe('as any runner', () => {
    let opened: OpenAdapter
    beforeAll(async () => {
      opened = await adapter.open(server.url, POOL_SIZE)
    })
    afterAll(async () => void (await opened.close()))
    const cases = transactionRunnerCases(() => opened.runner)
    // Asked for its ROLLBACK on a lost connection, postgres.js 3.4 fails outside of every promise.
    const isFit = (rule: string): boolean =>
      adapter.name !== 'postgres.js' || !rule.startsWith('a connection that is lost')
    testCases(cases.filter(({ name }) => isFit(name)))
  })

  it('does not wait for a rollback that stands behind a statement', async () => {
    const { runner, execute } = await open(adapter)
    const failure = new Error('the time is over')
    const startedAt = performance.now()
    const run = runner.transaction(async (tx) => {
      execute(tx, 'select pg_sleep(4)::text').catch(() => {})
      await delay(20)
      throw failure
    }, LIMITS)
    await expect(run).rejects.toBe(failure)
    expect(performance.now() - startedAt).toBeLessThan(3500)
  })
})

describe.each(ADAPTERS.filter(({ name }) => WITH_SAVEPOINTS.includes(name)))(
  'on $name',
  (adapter) => {
    const { name } = adapter

    it('commits what was written by the library, by statements and in savepoints', async () => {
      const { runner, insert, execute, executeNested } = await open(adapter)
      const result = await runner.transaction(async (tx) => {
        const { transaction: handle } = guardTransaction(tx)
        await insert(handle, 'a')
        await executeNested?.(handle, insertPayment('b'))
        await expect(executeNested?.(handle, insertPayment('a'))).rejects.toThrow()
        if (name === 'pg') await execute(handle, 'rollback to savepoint nested')
        const rows = await runner.query(tx, 'select id from payment where id = $1', ['b'])
        expect(rows).toEqual([{ id: 'b' }])
        await record(runner, tx, 'c')
        return 'done'
      }, LIMITS)
      expect(result).toBe('done')
      expect(await payments()).toEqual(['a', 'b', 'c'])
    })

    it('refuses a handler its own commit and rollback', async () => {
      const { runner, insert, execute } = await open(adapter)
      await runner.transaction(async (tx) => {
        const { transaction: handle } = guardTransaction(tx)
        for (const text of ['commit', '-- so\n ROLLBACK', 'begin', 'end']) {
          await expect(Promise.resolve().then(() => execute(handle, text))).rejects.toThrow(
            /neither begins/,
          )
        }
        await insert(handle, 'a')
        await record(runner, tx, 'b')
      }, LIMITS)
      expect(await payments()).toEqual(['a', 'b'])
    })

    it('gets a connection again, in whatever moment it has lost one', async () => {
      for (let round = 0; round < ROUNDS_OF_LOSS; round++) {
        const { runner, insert, close } = await adapter.open(server.url, 1)
        const lost = runner.transaction(async (tx) => {
          const [row] = await runner.query(tx, 'select pg_backend_pid() as pid', [])
          await insert(tx, 'a')
          await server.query('select pg_terminate_backend($1)', [row?.['pid']])
          await record(runner, tx, 'b')
        }, LIMITS)
        await expect(lost).rejects.toThrow()
        expect(await payments()).toEqual([])
        expect(await runner.query(undefined, 'select 1 as one', [], ALONE)).toEqual([{ one: 1 }])
        await close()
      }
    })

    it('takes as many round trips as it must', async () => {
      const proxy = await startPostgresProxy(server)
      onTestFinished(() => proxy.stop())
      const { runner, execute } = await open(adapter, 1, proxy.url)
      for (const id of ['a', 'b']) {
        proxy.reset()
        const first: FirstStatement = { text: 'select 1 as one' }
        const limits: OpeningLimits = { ...LIMITS, first }
        await runner.transaction(async (tx) => {
          expect(first.rows !== undefined).toBe(SENDING_FIRST.has(runner))
          const rows = first.rows ?? (await runner.query(tx, first.text, []))
          expect(rows).toEqual([{ one: 1 }])
          await execute(tx, 'select 2')
          await record(runner, tx, id)
        }, limits)
      }
      expect(proxy.roundTrips).toBe(ROUND_TRIPS[name] ?? FIVE)
      expect(proxy.commits).toBe(name === 'postgres.js' ? 2 : 1)
    })

    // pg has no nested transactions.
    if (name === 'pg') return

    it('lets a nested transaction that outlives the answer touch nothing', async () => {
      const { runner, insert, executeNested } = await open(adapter)
      let outliving: Promise<unknown> | undefined
      await runner.transaction(async (tx) => {
        const { transaction: handle, revoke } = guardTransaction(tx)
        outliving = executeNested?.(handle, `select pg_sleep(2) /* outliving ${name} */`)
        outliving?.catch(() => {})
        // By its text: a statement that an earlier test gave up may still sleep.
        await until('it sleeps', async () => {
          const sleeping = `select 1 from pg_stat_activity
        where wait_event = 'PgSleep' and query like '%outliving ${name} %'`
          return (await server.query(sleeping)).length > 0
        })
        revoke()
        await record(runner, tx, 'a')
      }, LIMITS)
      await runner.transaction(async (tx) => {
        await expect(outliving).rejects.toThrow(TransactionEndedError)
        await insert(tx, 'b')
        await record(runner, tx, 'c')
      }, LIMITS)
      expect(await payments()).toEqual(['a', 'b', 'c'])
    })
  },
)

it('on pg, a connection that is not free in time is destroyed', async () => {
  const { runner, execute } = await open(PG)
  const limits = { ...ALONE, statementMs: 50 }
  await expect(runner.query(undefined, 'select pg_sleep(30)', [], limits)).rejects.toThrow('50 ms')
  const failed = runner.transaction(async (tx) => {
    execute(tx, 'select pg_sleep(30)').catch(() => {})
    throw new Error('the time is over')
  }, LIMITS)
  await expect(failed).rejects.toThrow('the time is over')
  expect(await runner.query(undefined, 'select 1 as one', [], ALONE)).toEqual([{ one: 1 }])
})
