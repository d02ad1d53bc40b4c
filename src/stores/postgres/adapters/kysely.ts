import type { Isolation, Row, TransactionRunner } from '../runner.js'
import { noteKeepsSilentConnections } from '../silent-connections.js'
import { libraryRunner } from './library-runner.js'
import { requireMembers } from './required-members.js'

/** What is used of a `Kysely<DB>` on Postgres; `Tx` is its `Transaction<DB>`. */
export interface KyselyLike<Tx> {
  /** `false`: a transaction is refused. */
  readonly isTransaction: boolean
  /** Kysely's own. */
  transaction(): KyselyTransactionBuilder<Tx>
  /** Kysely's own. */
  connection(): { execute<R>(callback: (connection: KyselyExecutor) => Promise<R>): Promise<R> }
  /** Kysely's own. */
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

/** What `CompiledQuery.raw` makes. */
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
 * Kysely listens to no error of the pool that it is given. An application has to, on the pool and on each of
 * its clients, or a connection that the server ends ends the process. Kysely keeps a connection whose reply
 * never comes: give the pool the option `stream`.
 *
 * @throws TypeError when `db` is something else, or a transaction.
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
      // Users' plug-ins rename columns, or parse what looks like JSON.
      const executor = (on as KyselyExecutor).withoutPlugins()
      const { rows } = await executor.executeQuery(rawQuery(text, values))
      return rows as readonly Row[]
    },
  })
  // Its pool cannot be seen.
  return noteKeepsSilentConnections(runner, 'the option stream of the Pool of pg')
}

const rawQuery = (sql: string, parameters: readonly unknown[]): KyselyQuery => ({
  sql,
  parameters,
  queryId: { queryId: 'service-auth' },
  query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
})
