import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { Isolation, TransactionRunner } from '../../stores/postgres/runner.js'
import { sqlStateOf } from '../../stores/postgres/sql-state.js'
import type { StoreRules } from '../stores/store-case.js'
import {
  exhaust,
  LATE_MS,
  LIMITS,
  type RunnerAtTable,
  SHORT_ACQUIRE_MS,
  SLACK_MS,
  withTables,
} from './runner-at-table.js'

const ISOLATIONS: readonly Isolation[] = ['read committed', 'repeatable read', 'serializable']

export const TRANSACTION_RULES: StoreRules<TransactionRunner<unknown>> = withTables({
  'a work that resolves is called once and committed, and seen by nobody else before; its result is that of the transaction':
    async ({ runner, insert, holds }) => {
      let calls = 0
      const result = { calls }
      const returned = await runner.transaction(async (tx) => {
        calls++
        await insert(tx, 'a')
        await holds()
        return result
      }, LIMITS)
      assert.equal(returned, result)
      assert.equal(calls, 1, 'calls of the work')
      await holds('a')
    },

  'a work that rejects is called once and rolled back, and the caller gets its error': async ({
    runner,
    insert,
    holds,
  }) => {
    let calls = 0
    const failure = new Error('the work has failed')
    const ended = runner.transaction(async (tx) => {
      calls++
      await insert(tx, 'a')
      throw failure
    }, LIMITS)
    assert.equal(await errorOf(ended), failure)
    assert.equal(calls, 1, 'calls of the work')
    await holds()
  },

  'a statement without a transaction is in none': async ({ runner, insert, holds }) => {
    const ended = runner.transaction(async (tx) => {
      await insert(tx, 'a')
      await insert(undefined, 'b')
      throw new Error('rolled back')
    }, LIMITS)
    await errorOf(ended)
    await holds('b')
  },

  'transactions one after another leave nothing to each other': async (at) => {
    const { runner, insert, holds } = at
    const fails = (id: string): Promise<unknown> =>
      errorOf(
        runner.transaction(async (tx) => {
          await insert(tx, id)
          await runner.query(tx, "select set_config('lock_timeout', '54321ms', true)", [])
          throw new Error('rolled back')
        }, LIMITS),
      )
    await fails('a')
    await runner.transaction((tx) => insert(tx, 'b'), LIMITS)
    await insert(undefined, 'c')
    await fails('d')
    await runner.transaction(
      async (tx) => assert.notEqual(await lockTimeout(at, tx), '54321ms'),
      LIMITS,
    )
    assert.notEqual(await lockTimeout(at, undefined), '54321ms', 'a setting of the transaction')
    await holds('b', 'c')
  },

  'a transaction whose statement has failed is no success': async ({
    runner,
    insert,
    table,
    holds,
  }) => {
    const ended = runner.transaction(async (tx) => {
      await insert(tx, 'a')
      await errorOf(runner.query(tx, `select missing from ${table}`, []))
    }, LIMITS)
    await errorOf(ended)
    await holds()
  },

  'a constraint that fails at COMMIT is no success, and tells its SQLSTATE': async ({
    runner,
    insert,
    holds,
  }) => {
    const ended = runner.transaction(async (tx) => {
      await insert(tx, 'a')
      await insert(tx, 'a')
    }, LIMITS)
    assert.equal(sqlStateOf(await errorOf(ended)), '23505')
    await holds()
  },

  'a connection that is lost before COMMIT is no success, and others take its place': async ({
    runner,
    insert,
    holds,
  }) => {
    const ended = runner.transaction(async (tx) => {
      await insert(tx, 'a')
      const end = 'select pg_terminate_backend(pg_backend_pid())::text as ended'
      await runner.query(tx, end, []).catch(() => {})
    }, LIMITS)
    await errorOf(ended)
    await holds()
  },

  'where the pool is exhausted, nothing waits longer than acquireMs, and nothing runs later':
    async (at) => {
      const { runner, insert, table, holds } = at
      let lateCalls = 0
      const release = await exhaust(at)
      try {
        const late = runner.transaction(
          async (tx) => {
            lateCalls++
            await insert(tx, 'late')
          },
          { ...LIMITS, acquireMs: SHORT_ACQUIRE_MS },
        )
        const statement = runner.query(undefined, `insert into ${table} (id) values ('late')`, [], {
          acquireMs: SHORT_ACQUIRE_MS,
          statementMs: SLACK_MS,
        })
        const refused = Promise.all([errorOf(late), errorOf(statement)])
        await Promise.race([refused, delay(SHORT_ACQUIRE_MS + SLACK_MS).then(tooLong)])
      } finally {
        await release()
      }
      await delay(LATE_MS)
      await holds()
      assert.equal(lateCalls, 0, 'calls of a work that came too late')
    },

  'a transaction has the isolation that is asked for': async ({ runner }) => {
    for (const isolation of ISOLATIONS) {
      const text = "select current_setting('transaction_isolation') as level"
      const read = runner.transaction((tx) => runner.query(tx, text, []), { ...LIMITS, isolation })
      assert.deepEqual(await read, [{ level: isolation }])
    }
  },
})

async function lockTimeout({ runner }: RunnerAtTable, tx: unknown): Promise<unknown> {
  const text = "select current_setting('lock_timeout') as setting"
  const [row] = await runner.query(tx, text, [])
  return row?.['setting']
}

const tooLong = (): never => assert.fail('acquireMs is not kept')

export const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => assert.fail('expected a rejection'),
    (error: unknown) => error,
  )
