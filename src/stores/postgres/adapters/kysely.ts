import { hasFunctions } from '../../../base/options.js'
import type { Isolation, Row, TransactionRunner } from '../runner.js'
import { libraryRunner } from './library-runner.js'

/** The parts of a `Kysely<DB>` on Postgres that the adapter uses; `Tx` is its `Transaction<DB>`. */
export interface KyselyLike<Tx> {
  /** Must be `false`: a transaction is refused. */
  readonly isTransaction: boolean
  /** Returns a builder of a transaction. */
  transaction(): KyselyTransactionBuilder<Tx>
  /** Runs a callback on a single connection. */
  connection(): { execute<R>(callback: (connection: KyselyExecutor) => Promise<R>): Promise<R> }
  /** Returns an executor without plug-ins. */
  withoutPlugins(): KyselyExecutor
}

interface KyselyTransactionBuilder<Tx> {
  setIsolationLevel(isolation: Isolation): KyselyTransactionBuilder<Tx>
  execute<R>(callback: (tx: Tx) => Promise<R>): Promise<R>
}

interface KyselyExecutor {
  withoutPlugins(): KyselyExecutor
  executeQuery(query: KyselyQuery): Promise<{ readonly rows: readonly unknown[] }>
}

/** The result of `CompiledQuery.raw`. */
interface KyselyQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly queryId: { readonly queryId: string }
  readonly query: {
    readonly kind: 'RawNode'
    readonly sqlFragments: readonly string[]
    readonly parameters: readonly never[]
  }
}

/**
 * Runs a store on a `Kysely` instance (0.28) for Postgres: `fromKysely(db)`.
 *
 * Kysely does not listen to errors of its pool. An application must, on the pool and on each of its clients;
 * otherwise the process crashes when the server ends a connection. Kysely keeps a connection whose reply
 * never comes: give the pool the option `stream`.
 *
 * @throws TypeError if `db` is something else, or a transaction.
 *
 * @example
 * ```ts
 * import { fromKysely, postgresStore } from 'express-service-auth/postgres'
 * import { Kysely, PostgresDialect } from 'kysely'
 * import { Pool } from 'pg'
 *
 * const pool = new Pool({ connectionString: process.env['DATABASE_URL'] })
 * const report = ({ message }: Error) => console.error(message)
 * pool.on('error', report).on('connect', (client) => void client.on('error', report))
 * const db = new Kysely<{ orders: { id: string } }>({ dialect: new PostgresDialect({ pool }) })
 * const store = postgresStore(fromKysely(db))
 * await store.check()
 * store.close()
 * await db.destroy()
 * ```
 */
export function fromKysely<Tx>(db: KyselyLike<Tx>): TransactionRunner<Tx> {
  if (!hasFunctions(db, ['transaction', 'connection', 'withoutPlugins', 'executeQuery'])) {
    throw new TypeError('fromKysely: expected a Kysely instance')
  }
  if (db.isTransaction) {
    throw new TypeError('fromKysely: expected a Kysely instance, no transaction')
  }
  return libraryRunner<Tx>({
    transaction({ isolation }) {
      const builder = db.transaction()
      const begun = isolation ? builder.setIsolationLevel(isolation) : builder
      return (use) => begun.execute(use)
    },
    async query(tx, { text, values }) {
      const query: KyselyQuery = {
        sql: text,
        parameters: values,
        queryId: { queryId: 'service-auth' },
        query: { kind: 'RawNode', sqlFragments: [text], parameters: [] },
      }
      // The user's plug-ins may rename columns, or parse values that look like JSON.
      const { rows } = await (tx as KyselyExecutor).withoutPlugins().executeQuery(query)
      return rows as readonly Row[]
    },
    connection: (use) => db.connection().execute((connection) => use(connection as Tx)),
  })
}
