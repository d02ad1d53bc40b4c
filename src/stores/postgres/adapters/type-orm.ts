import { hasFunctions } from '../../../base/options.js'
import type { Isolation, Row, TransactionRunner } from '../runner.js'
import { libraryRunner, type Opening } from './library-runner.js'

/** The parts of a `DataSource` on Postgres that the adapter uses; `Tx` is its `EntityManager`. */
export interface DataSourceLike<Tx> {
  /** `type` must be `postgres`. */
  readonly options: { readonly type: string }
  /** Runs `run` in a transaction. */
  transaction<R>(run: (tx: Tx) => Promise<R>): Promise<R>
  /** Runs `run` in a transaction with an isolation level. */
  transaction<R>(isolation: Uppercase<Isolation>, run: (tx: Tx) => Promise<R>): Promise<R>
  /** Creates a query runner, which has its own connection. */
  createQueryRunner(): QueryRunnerLike<Tx>
}

interface QueryRunnerLike<Tx> {
  readonly manager: EntityManagerLike & Pick<DataSourceLike<Tx>, 'transaction'>
  /** Resolves to pg's client. */
  connect(): Promise<unknown>
  query(
    text: string,
    values: unknown[],
    useStructuredResult: true,
  ): Promise<{ readonly records: readonly unknown[] }>
  release(): Promise<void>
}

interface EntityManagerLike {
  readonly queryRunner?: Pick<QueryRunnerLike<unknown>, 'query'>
}

/** pg's client. `end` destroys a connection that has a query in progress. */
interface ClientLike {
  end(): Promise<void>
}

/**
 * Runs a store on a `DataSource` of TypeORM (1.1) for Postgres: `fromTypeOrm(source)`. If statements are
 * logged, TypeORM also logs those of the store.
 *
 * TypeORM listens to a client's errors too late. The source needs
 * `extra: { onConnect: (client) => client.on('error', () => {}) }`; otherwise the process crashes if a server
 * stops just as it accepts a connection.
 *
 * @throws TypeError if `source` is something else, or of another database.
 *
 * @example
 * ```ts
 * import { fromTypeOrm, postgresStore } from 'express-service-auth/postgres'
 * import type { ClientBase } from 'pg'
 * import { DataSource } from 'typeorm'
 *
 * const url = process.env['DATABASE_URL'] ?? ''
 * const onConnect = (client: ClientBase) => void client.on('error', () => {})
 * const source = new DataSource({ type: 'postgres', url, extra: { onConnect } })
 * await source.initialize()
 * const store = postgresStore(fromTypeOrm(source))
 * await store.check()
 * store.close()
 * await source.destroy()
 * ```
 */
export function fromTypeOrm<Tx>(source: DataSourceLike<Tx>): TransactionRunner<Tx> {
  const isSource = hasFunctions(source, ['transaction', 'createQueryRunner'])
  if (!isSource || source.options.type !== 'postgres') {
    throw new TypeError('fromTypeOrm: expected a DataSource of type postgres')
  }
  return libraryRunner<Tx>({
    transaction({ isolation }) {
      const level = isolation?.toUpperCase() as Uppercase<Isolation> | undefined
      return (use, opening) =>
        useQueryRunner(source, opening, ({ manager }) =>
          level ? manager.transaction(level, use) : manager.transaction(use),
        )
    },
    connection: (use, opening) =>
      useQueryRunner(source, opening, ({ manager }) => use(manager as Tx)),
    async query(tx, { text, values }) {
      const { queryRunner } = tx as EntityManagerLike
      if (!queryRunner) throw new TypeError('This EntityManager is in no transaction')
      // `manager.query` returns the rows of an UPDATE or DELETE in a different form from those of a SELECT.
      const { records } = await queryRunner.query(text, [...values], true)
      return records as readonly Row[]
    },
  })
}

async function useQueryRunner<Tx, R>(
  source: DataSourceLike<Tx>,
  opening: Opening,
  use: (runner: QueryRunnerLike<Tx>) => Promise<R>,
): Promise<R> {
  const runner = source.createQueryRunner()
  try {
    const client = (await runner.connect()) as ClientLike
    if (opening.isAbandoned) throw new Error('The connection came too late')
    opening.destroy = () => void client.end().catch(() => {})
    return await use(runner)
  } finally {
    opening.destroy = () => {}
    await runner.release()
  }
}
