import type { Socket } from 'node:net'
import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { CamelCasePlugin, Kysely, ParseJSONResultsPlugin, PostgresDialect, sql } from 'kysely'
import { type ClientBase, Pool, type PoolClient, type PoolConfig } from 'pg'
import postgres from 'postgres'
import { DataSource, type EntityManager, EntitySchema } from 'typeorm'
import { fromDrizzle } from '../../../../src/stores/postgres/adapters/drizzle.js'
import { fromKysely } from '../../../../src/stores/postgres/adapters/kysely.js'
import { fromPg } from '../../../../src/stores/postgres/adapters/pg.js'
import { fromPostgresJs } from '../../../../src/stores/postgres/adapters/postgres-js.js'
import { fromPrisma } from '../../../../src/stores/postgres/adapters/prisma.js'
import { fromTypeOrm } from '../../../../src/stores/postgres/adapters/type-orm.js'
import type { TransactionRunner } from '../../../../src/stores/postgres/runner.js'
import { openPrisma, type TestPrismaTransaction } from '../../../support/postgres/prisma.js'

/** The table that the applications of the tests have. */
export const CREATE_PAYMENT = 'create table payment (id text primary key, note text)'

export const insertPayment = (id: string): string => `insert into payment (id) values ('${id}')`

export interface PaymentTable {
  payment: { id: string; note: string | null }
}

/** A library as an application has it: with a pool, a runner on it, and the handler's way to write. */
export interface OpenAdapter<Tx = unknown> {
  readonly runner: TransactionRunner<Tx>
  /** Adds a payment as a handler does: by the library, with no help of the runner. */
  insert(tx: Tx, id: string): Promise<unknown>
  /** Any SQL, by the library. */
  execute(tx: Tx, text: string): Promise<unknown>
  /** The same in a nested transaction or after a savepoint. */
  executeNested?(tx: Tx, text: string): Promise<unknown>
  close(): Promise<unknown>
}

/** Opens `max` connections at most, each on a socket of `openSocket` if that is given. */
type OpenerOf<Tx> = (
  url: string,
  max: number,
  openSocket?: () => Socket,
) => Promise<OpenAdapter<Tx>>

export interface Adapter {
  readonly name: string
  readonly open: OpenerOf<unknown>
}

const poolOf = (connectionString: string, max: number, openSocket?: () => Socket): Pool =>
  new Pool({ connectionString, max, ...(openSocket && { stream: openSocket }) })

const openPgWith =
  (config: PoolConfig): OpenerOf<PoolClient> =>
  async (connectionString, max) => {
    const pool = new Pool({ connectionString, max, ...config })
    return {
      runner: fromPg(pool),
      insert: (tx, id) => tx.query(insertPayment(id)),
      execute: (tx, text) => tx.query(text),
      async executeNested(tx, text) {
        await tx.query('savepoint nested')
        await tx.query(text)
        await tx.query('release savepoint nested')
      },
      close: () => pool.end(),
    }
  }

const openPostgresJs: OpenerOf<postgres.TransactionSql> = async (url, max, openSocket) => {
  const { hostname, port } = new URL(url)
  const onOwnSockets = openSocket && {
    fetch_types: false,
    backoff: () => 0.05,
    socket: () => openSocket().connect(Number(port), hostname),
  }
  const client = postgres(url, { max, onnotice: () => {}, ...onOwnSockets })
  // Its queries are sent when they are awaited.
  const execute = async (tx: postgres.TransactionSql, text: string) => tx.unsafe(text)
  return {
    runner: fromPostgresJs(client) as TransactionRunner<postgres.TransactionSql>,
    insert: (tx, id) => execute(tx, insertPayment(id)),
    execute,
    executeNested: (tx, text) => tx.savepoint((nested) => nested.unsafe(text)),
    close: () => client.end({ timeout: 1 }),
  }
}

type DrizzleTransaction = Parameters<Parameters<NodePgDatabase['transaction']>[0]>[0]

const openDrizzle: OpenerOf<DrizzleTransaction> = async (url, max, openSocket) => {
  const pool = poolOf(url, max, openSocket)
  const execute = async (tx: DrizzleTransaction, text: string) => tx.execute(drizzleSql.raw(text))
  return {
    runner: fromDrizzle(drizzle(pool), drizzleSql) as TransactionRunner<DrizzleTransaction>,
    insert: (tx, id) => execute(tx, insertPayment(id)),
    execute,
    executeNested: (tx, text) =>
      tx.transaction(async (nested) => {
        await nested.execute(drizzleSql.raw(text))
      }),
    close: () => pool.end(),
  }
}

const openKysely: OpenerOf<import('kysely').Transaction<PaymentTable>> = async (
  url,
  max,
  openSocket,
) => {
  const pool = poolOf(url, max, openSocket)
  // Kysely listens to neither.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const db = new Kysely<PaymentTable>({
    dialect: new PostgresDialect({ pool }),
    plugins: [new CamelCasePlugin(), new ParseJSONResultsPlugin()],
  })
  return {
    runner: fromKysely(db),
    insert: (tx, id) => tx.insertInto('payment').values({ id }).execute(),
    execute: (tx, text) => sql.raw(text).execute(tx),
    close: () => db.destroy(),
  }
}

interface PaymentRow {
  id: string
  note: string | null
}

const payments = new EntitySchema<PaymentRow>({
  name: 'payment',
  columns: { id: { type: 'text', primary: true }, note: { type: 'text', nullable: true } },
})

const openTypeOrm: OpenerOf<EntityManager> = async (url, max) => {
  const source = new DataSource({
    type: 'postgres',
    url,
    poolSize: max,
    entities: [payments],
    installExtensions: false,
    // TypeORM listens to a client only after it may have told of its end.
    extra: { onConnect: (client: ClientBase) => void client.on('error', () => {}) },
  })
  await source.initialize()
  return {
    runner: fromTypeOrm(source),
    insert: (tx, id) => tx.getRepository(payments).insert({ id }),
    execute: (tx, text) => tx.query(text),
    close: () => source.destroy(),
  }
}

const openPrismaLibrary: OpenerOf<TestPrismaTransaction> = async (url, max, openSocket) => {
  const prisma = await openPrisma(url, max, openSocket && { stream: openSocket })
  return {
    runner: fromPrisma(prisma),
    insert: async (tx, id) => tx.payment.create({ data: { id } }),
    execute: async (tx, text) => tx.$executeRawUnsafe(text),
    close: () => prisma.$disconnect(),
  }
}

/** Each has its own type of transaction, which the tests have no use for. */
const adapterOf = <Tx>(name: string, open: OpenerOf<Tx>): Adapter => ({
  name,
  open: open as unknown as Adapter['open'],
})

export const PG = adapterOf('pg', openPgWith({}))
export const PG_BY_PIPELINE = adapterOf('pg by pipeline', openPgWith({ pipeline: true }))

export const ADAPTERS: readonly Adapter[] = [
  PG,
  adapterOf('postgres.js', openPostgresJs),
  adapterOf('drizzle', openDrizzle),
  adapterOf('kysely', openKysely),
  adapterOf('TypeORM', openTypeOrm),
  adapterOf('Prisma', openPrismaLibrary),
]
