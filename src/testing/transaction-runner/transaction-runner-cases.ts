import assert from 'node:assert/strict'
import type { TransactionRunner } from '../../stores/postgres/runner.js'
import { sqlStateOf } from '../../stores/postgres/sql-state.js'
import { casesOf, type StoreCase, type StoreOpener, type StoreRules } from '../stores/store-case.js'
import { LIMITS, SLACK_MS, withTables } from './runner-at-table.js'
import { errorOf, TRANSACTION_RULES } from './transaction-rules.js'

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
    { ...TRANSACTION_RULES, ...STATEMENT_RULES },
    open as StoreOpener<unknown> as StoreOpener<TransactionRunner<unknown>>,
  )

const STATEMENT_MS = 100
const SLEEP = `select pg_sleep(${(STATEMENT_MS + 2 * SLACK_MS) / 1000})::text as slept`

const STATEMENT_RULES: StoreRules<TransactionRunner<unknown>> = withTables({
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
})
