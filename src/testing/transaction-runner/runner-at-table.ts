import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
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
export const SHORT_ACQUIRE_MS = 100
/** The time that opening a connection may take; a pool that has none after it is exhausted. */
const OPENING_MS = 2000
/** The delay that a busy machine may cause. */
export const SLACK_MS = 2000

/** The time for which a case waits, once there are connections again, for calls that must no longer run. */
export const LATE_MS = 250

/** Holds transactions until the pool has no connection left; returns a function that ends them. */
export async function exhaust({ runner }: RunnerAtTable): Promise<() => Promise<void>> {
  const held: Promise<void>[] = []
  const { promise: released, resolve: release } = withResolvers()
  let isExhausted = false
  while (!isExhausted && held.length < MAX_HELD) {
    const { promise: begun, resolve: begin } = withResolvers()
    const holding = runner.transaction(
      async (tx) => {
        await runner.query(tx, 'select 1 as one', [])
        begin()
        await released
      },
      { ...LIMITS, acquireMs: OPENING_MS },
    )
    const ended = holding.catch(() => {
      isExhausted = true
    })
    held.push(ended)
    // After this wait the runner has ignored `acquireMs`, which the case detects.
    const waited = delay(OPENING_MS + SLACK_MS, true, { ref: false })
    if ((await Promise.race([begun, ended, waited])) === true) isExhausted = true
  }
  return async () => {
    release()
    await Promise.all(held)
  }
}

function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {}
  const promise = new Promise<void>((resolved) => {
    resolve = resolved
  })
  return { promise, resolve }
}
