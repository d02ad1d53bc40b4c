import type { Row, Statement, TransactionRunner } from '../runner.js'
import { libraryRunner } from './library-runner.js'
import { fromPg, ignoreErrors, isPgPool, type PgPoolLike } from './pg.js'

/**
 * A database of drizzle 0.45 on a pool of node-postgres; `T` is the object that `transaction` passes to its callback.
 */
export interface DrizzleLike<T> {
  /** The pool of the database. */
  readonly $client: PgPoolLike<unknown>
  /** Runs `work` in a transaction. */
  transaction<R>(
    work: (tx: T) => Promise<R>,
    config?: { isolationLevel?: 'read committed' | 'repeatable read' | 'serializable' },
  ): Promise<R>
}

/** drizzle's `sql`. */
export interface SqlTag {
  /** Creates a query from a template literal. */
  (strings: TemplateStringsArray, ...values: unknown[]): unknown
  /** Creates SQL from a text, without escaping. */
  raw(text: string): unknown
}

interface ResultLike {
  readonly rows: Row[]
}

interface TransactionLike {
  execute(query: unknown): Promise<ResultLike>
}

/**
 * Runs transactions on drizzle 0.45 with node-postgres, by `db.transaction`; `transactionOf` returns the
 * object that this passes to its callback. `sql` is drizzle's own. The pool and its clients get a listener
 * for their `error` events, so that a lost connection does not crash the process. drizzle keeps a connection
 * whose reply never comes: give the pool the option `stream`.
 *
 * @throws TypeError if `db` is not on a pool, or `sql` is not drizzle's `sql`.
 *
 * @example
 * ```ts
 * import { sql } from 'drizzle-orm'
 * import { drizzle } from 'drizzle-orm/node-postgres'
 * import { fromDrizzle, postgresStore } from 'express-service-auth/postgres'
 * import { Pool } from 'pg'
 *
 * const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
 * const store = postgresStore(fromDrizzle(drizzle(pool), sql))
 * await store.check()
 * store.close()
 * await pool.end()
 * ```
 */
export function fromDrizzle<T>(db: DrizzleLike<T>, sql: SqlTag): TransactionRunner<T> {
  if (!isPgPool(Object(db).$client) || typeof db.transaction !== 'function') {
    throw new TypeError(
      'fromDrizzle: expected a drizzle database on a Pool of pg, of drizzle-orm/node-postgres; one on postgres.js needs a second database on such a pool',
    )
  }
  if (typeof sql !== 'function' || typeof sql.raw !== 'function') {
    throw new TypeError("fromDrizzle: expected drizzle's sql")
  }
  // Not when they are connected: the pool may have clients already.
  db.$client.on('acquire', ignoreErrors)
  const pool = fromPg(db.$client)
  const runner = libraryRunner<T>({
    transaction({ isolation }) {
      const config = isolation ? { isolationLevel: isolation } : undefined
      return (use) => db.transaction(use, config)
    },
    async query(tx, statement) {
      const { rows } = await (tx as TransactionLike).execute(toQuery(sql, statement))
      return rows
    },
  })
  // A statement without a transaction by the pool, because drizzle cannot limit the wait for a connection.
  return {
    ...runner,
    query: (tx, ...statement) => (tx === undefined ? pool : runner).query(tx, ...statement),
  }
}

/** Converts the text to the template form of drizzle's tag, with the values in place of `$1`, `$2`, ... */
function toQuery(sql: SqlTag, { text, values }: Statement): unknown {
  if (values.length === 0) return sql.raw(text)
  const parts = text.split(/\$(\d+)/)
  const strings = parts.filter((_part, index) => index % 2 === 0)
  const numbers = parts.filter((_part, index) => index % 2 === 1)
  const inOrder = numbers.map((number) => values[Number(number) - 1] ?? null)
  return sql(Object.assign(strings, { raw: strings }), ...inOrder)
}
