import type { Isolation, Row, TransactionRunner } from '../runner.js'
import { noteKeepsSilentConnections } from '../silent-connections.js'
import { libraryRunner } from './library-runner.js'
import { requireMembers } from './required-members.js'

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
 */
export function fromKysely<Tx>(db: KyselyLike<Tx>): TransactionRunner<Tx> {
  requireMembers('fromKysely', 'a Kysely instance', db, [
    'transaction',
    'connection',
    'withoutPlugins',
    'executeQuery',
  ])
  if (db.isTransaction)
    throw new TypeError('fromKysely: expected a Kysely instance, no transaction')
  const runner = libraryRunner<Tx, KyselyExecutor>({
    transaction({ isolation }) {
      const builder = db.transaction()
      const begun = isolation ? builder.setIsolationLevel(isolation) : builder
      return (use) => begun.execute(use)
    },
    connection: () => (use) => db.connection().execute(use),
    async query(on, text, values) {
      // The user's plug-ins may rename columns, or parse values that look like JSON.
      const executor = (on as KyselyExecutor).withoutPlugins()
      const { rows } = await executor.executeQuery(rawQuery(text, values))
      return rows as readonly Row[]
    },
  })
  // Kysely does not expose the options of its pool.
  return noteKeepsSilentConnections(runner, 'the option stream of the Pool of pg')
}

const rawQuery = (sql: string, parameters: readonly unknown[]): KyselyQuery => ({
  sql,
  parameters,
  queryId: { queryId: 'service-auth' },
  query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
})
