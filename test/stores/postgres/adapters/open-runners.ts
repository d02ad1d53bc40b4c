import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import postgres from 'postgres'
import { fromDrizzle } from '../../../../src/stores/postgres/adapters/drizzle.js'
import { fromPg } from '../../../../src/stores/postgres/adapters/pg.js'
import { fromPostgresJs } from '../../../../src/stores/postgres/adapters/postgres-js.js'
import type { TransactionRunner } from '../../../../src/stores/postgres/runner.js'

/** What a handler would write by its library; the same for each of them. */
export interface OpenRunner {
  readonly runner: TransactionRunner<unknown>
  /** Sends the text by the library's own means, when it is awaited at the latest. */
  readonly write: (tx: unknown, text: string) => PromiseLike<unknown>
  /** The same inside of a nested transaction or after a savepoint. */
  readonly writeNested: (tx: unknown, text: string) => Promise<unknown>
  end(): Promise<unknown>
}

type Open = (url: string, max: number) => OpenRunner

function openPg(url: string, max: number): OpenRunner {
  const pool = new pg.Pool({ connectionString: url, max })
  return {
    runner: fromPg(pool) as TransactionRunner<unknown>,
    write: (tx, text) => (tx as pg.PoolClient).query(text),
    writeNested: async (tx, text) => {
      const client = tx as pg.PoolClient
      await client.query('savepoint nested')
      await client.query(text)
      await client.query('release savepoint nested')
    },
    end: () => pool.end(),
  }
}

function openPostgresJs(url: string, max: number): OpenRunner {
  const sql = postgres(url, { max, onnotice: () => {} })
  return {
    runner: fromPostgresJs(sql) as TransactionRunner<unknown>,
    write: (tx, text) => (tx as postgres.TransactionSql).unsafe(text),
    writeNested: (tx, text) =>
      (tx as postgres.TransactionSql).savepoint((nested) => nested.unsafe(text)),
    end: () => sql.end({ timeout: 1 }),
  }
}

function openDrizzle(url: string, max: number): OpenRunner {
  const pool = new pg.Pool({ connectionString: url, max })
  const db = drizzle(pool)
  type Transaction = Parameters<Parameters<typeof db.transaction>[0]>[0]
  return {
    runner: fromDrizzle(db, drizzleSql) as TransactionRunner<unknown>,
    write: (tx, text) => (tx as Transaction).execute(drizzleSql.raw(text)),
    writeNested: (tx, text) =>
      (tx as Transaction).transaction(async (nested) => {
        await nested.execute(drizzleSql.raw(text))
      }),
    end: () => pool.end(),
  }
}

export const OPEN_RUNNERS: readonly (readonly [string, Open])[] = [
  ['pg', openPg],
  ['postgres.js', openPostgresJs],
  ['drizzle', openDrizzle],
]
