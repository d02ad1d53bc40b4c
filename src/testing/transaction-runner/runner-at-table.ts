import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type {
  StatementLimits,
  TransactionLimits,
  TransactionRunner,
} from '../../stores/postgres/runner.js'
import type { StoreRules } from '../stores/store-case.js'

/** A runner, and a table that only its case uses. */
export interface RunnerAtTable<Tx = unknown> {
  readonly runner: TransactionRunner<Tx>
  readonly table: string
  /** Adds a row, in the transaction or without one. */
  insert(tx: Tx | undefined, id: string): Promise<unknown>
  /** Checks which rows the connections of the pool see now. */
  holds(...ids: readonly string[]): Promise<void>
}

type RunnerRules = Readonly<Record<string, (at: RunnerAtTable) => Promise<void>>>

export const LIMITS: TransactionLimits = { acquireMs: 5000, transactionMs: 10_000 }

/** A broken runner may hold a lock on the table forever. */
const DROP_LIMITS: StatementLimits = { acquireMs: 2000, statementMs: 2000 }

/** Concurrent reads, so that one of them uses a connection that was left in a transaction. */
const READERS = 3

/** Gives each rule its own table, and drops it afterwards. */
export const withTables = (rules: RunnerRules): StoreRules<TransactionRunner<unknown>> =>
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
  `create table ${table} (id text, bytes bytea, unique (id) deferrable initially deferred)`

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
