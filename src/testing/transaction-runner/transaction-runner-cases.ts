import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type {
  Isolation,
  StatementLimits,
  TransactionLimits,
  TransactionRunner,
} from '../../stores/postgres/runner.js'
import { sqlStateOf } from '../../stores/postgres/sql-state.js'
import { casesOf, type StoreCase, type StoreOpener, type StoreRules } from '../stores/store-case.js'

/**
 * The rules of a `TransactionRunner`, as cases for any test runner; run them one after another. They need a pool of 4
 * to 100 connections, and a role that may create tables in its first schema; each case creates one and drops it.
 *
 * @throws TypeError if it is given no function.
 *
 * @example
 * ```ts
 * import { fromPg } from 'express-service-auth/postgres'
 * import { transactionRunnerCases } from 'express-service-auth/testing'
 * import { Pool } from 'pg'
 *
 * const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
 * for (const { name, run } of transactionRunnerCases(() => fromPg(pool))) {
 *   await run()
 *   console.log(`ok: ${name}`)
 * }
 * await pool.end()
 * ```
 */
export const transactionRunnerCases = <Tx>(
  open: StoreOpener<TransactionRunner<Tx>>,
): readonly StoreCase[] =>
  // The rules pass a transaction only to the runner that it comes from.
  casesOf(
    withTables({ ...TRANSACTION_RULES, ...STATEMENT_RULES }),
    open as StoreOpener<unknown> as StoreOpener<TransactionRunner<unknown>>,
  )

/** A runner, and a table that only its case uses. */
interface RunnerAtTable {
  readonly runner: TransactionRunner<unknown>
  readonly table: string
  /** Adds a row, in the transaction or without one. */
  insert(tx: unknown, id: string): Promise<unknown>
  /** Checks which rows the connections of the pool see now. */
  holds(...ids: readonly string[]): Promise<void>
}

type RunnerRules = Readonly<Record<string, (at: RunnerAtTable) => Promise<void>>>

const LIMITS: TransactionLimits = { acquireMs: 5000, transactionMs: 10_000 }

/** A broken runner may hold a lock on the table forever. */
const DROP_LIMITS: StatementLimits = { acquireMs: 2000, statementMs: 2000 }

/** Concurrent reads, so that one of them uses a connection that was left in a transaction. */
const READERS = 3

/** Gives each rule its own table, and drops it afterwards. */
const withTables = (rules: RunnerRules): StoreRules<TransactionRunner<unknown>> =>
  Object.fromEntries(
    Object.entries(rules).map(([name, rule]) => [
      name,
      async (runner) => {
        const table = `transaction_runner_${randomUUID().replaceAll('-', '')}`
        await runner.query(undefined, tableText(table), [])
        try {
          await rule(atTable(runner, table))
        } finally {
          await runner.query(undefined, `drop table ${table}`, [], DROP_LIMITS)
        }
      },
    ]),
  )

const tableText = (table: string): string =>
  `create table ${table} (id text, unique (id) deferrable initially deferred)`

function atTable(runner: TransactionRunner<unknown>, table: string): RunnerAtTable {
  return {
    runner,
    table,
    insert: (tx, id) => runner.query(tx, `insert into ${table} (id) values ($1)`, [id]),
    async holds(...ids) {
      const text = `select id from ${table} order by id collate "C"`
      const reads = Array.from({ length: READERS }, () => runner.query(undefined, text, []))
      for (const rows of await Promise.all(reads)) {
        assert.deepEqual(
          rows,
          ids.map((id) => ({ id })),
          'the rows that can be seen',
        )
      }
    },
  }
}

/** More connections than the pool of an application has. */
const MAX_HELD = 100
const SHORT_ACQUIRE_MS = 100
/** The time that opening a connection may take; a pool that has none after it is exhausted. */
const OPENING_MS = 2000
/** The delay that a busy machine may cause. */
const SLACK_MS = 2000

/** The time for which a case waits, once there are connections again, for calls that must no longer run. */
const LATE_MS = 250

const ISOLATIONS: readonly Isolation[] = ['read committed', 'repeatable read', 'serializable']

const TRANSACTION_RULES: RunnerRules = {
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
}

async function lockTimeout({ runner }: RunnerAtTable, tx: unknown): Promise<unknown> {
  const text = "select current_setting('lock_timeout') as setting"
  const [row] = await runner.query(tx, text, [])
  return row?.['setting']
}

const tooLong = (): never => assert.fail('acquireMs is not kept')

const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => assert.fail('expected a rejection'),
    (error: unknown) => error,
  )

const STATEMENT_MS = 100
const SLEEP = `select pg_sleep(${(STATEMENT_MS + 2 * SLACK_MS) / 1000})::text as slept`

const STATEMENT_RULES: RunnerRules = {
  'rows have the names and the text that the server has sent': async ({ runner }) => {
    const text = `select '{"a": 1}' as result, $1::text as bound, null::text as nothing`
    const expected = [{ result: '{"a": 1}', bound: "it's $1", nothing: null }]
    assert.deepEqual(await runner.query(undefined, text, ["it's $1"]), expected)
    const inside = runner.transaction((tx) => runner.query(tx, text, ["it's $1"]), LIMITS)
    assert.deepEqual(await inside, expected)
  },

  'statements that change rows return those that they are to return': async ({ runner, table }) => {
    await runner.transaction(async (tx) => {
      const insert = `insert into ${table} (id) values ('a') returning id`
      assert.deepEqual(await runner.query(tx, insert, []), [{ id: 'a' }])
      assert.deepEqual(await runner.query(tx, `update ${table} set id = 'b'`, []), [])
      const remove = `delete from ${table} returning id`
      assert.deepEqual(await runner.query(tx, remove, []), [{ id: 'b' }])
    }, LIMITS)
  },

  'an error tells the SQLSTATE of the server': async ({ runner, table }) => {
    const faulty = `select missing from ${table}`
    const alone = await errorOf(runner.query(undefined, faulty, []))
    assert.equal(sqlStateOf(alone), '42703')
    const inside = await errorOf(runner.transaction((tx) => runner.query(tx, faulty, []), LIMITS))
    assert.equal(sqlStateOf(inside), '42703')
  },

  'nothing waits longer than statementMs for a statement': async ({ runner }) => {
    const startedAt = performance.now()
    await errorOf(
      runner.query(undefined, SLEEP, [], { acquireMs: 5000, statementMs: STATEMENT_MS }),
    )
    const waitedMs = performance.now() - startedAt
    assert.ok(
      waitedMs < STATEMENT_MS + SLACK_MS,
      `waited ${waitedMs} ms, although statementMs is ${STATEMENT_MS}`,
    )
  },
}

/** Holds transactions until the pool has no connection left; returns a function that ends them. */
async function exhaust({ runner }: RunnerAtTable): Promise<() => Promise<void>> {
  const ending = new AbortController()
  const ended = once(ending.signal, 'abort')
  const held: Promise<void>[] = []
  const limits = { ...LIMITS, acquireMs: OPENING_MS }
  const isExhausted = (): Promise<boolean> =>
    new Promise((resolve) => {
      const holding = runner.transaction(async (tx) => {
        await runner.query(tx, 'select 1 as one', [])
        resolve(false)
        await ended
      }, limits)
      held.push(
        holding.then(
          () => resolve(false),
          () => resolve(true),
        ),
      )
      // After this wait the runner has ignored `acquireMs`, which the case detects.
      setTimeout(resolve, OPENING_MS + SLACK_MS, true).unref()
    })
  while (held.length < MAX_HELD) if (await isExhausted()) break
  return async () => {
    ending.abort()
    await Promise.all(held)
  }
}
