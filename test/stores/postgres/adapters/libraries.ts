import { CamelCasePlugin, Kysely, ParseJSONResultsPlugin, PostgresDialect, sql } from 'kysely'
import { type ClientBase, Pool } from 'pg'
import { DataSource, type EntityManager, EntitySchema } from 'typeorm'
import { fromKysely } from '../../../../src/stores/postgres/adapters/kysely.js'
import { fromPrisma } from '../../../../src/stores/postgres/adapters/prisma.js'
import { fromTypeOrm } from '../../../../src/stores/postgres/adapters/type-orm.js'
import type { TransactionRunner } from '../../../../src/stores/postgres/runner.js'
import { openPrisma, type TestPrismaTransaction } from '../../../support/postgres/prisma.js'

/** The table that the applications of the tests have. */
export const CREATE_PAYMENT = 'create table payment (id text primary key, note text)'

export interface PaymentTable {
  payment: { id: string; note: string | null }
}

/** A library as an application has it: with a pool, a runner on it, and the handler's way to write. */
export interface OpenLibrary<Tx = unknown> {
  readonly runner: TransactionRunner<Tx>
  /** As a handler does: by the library, with no help of the runner. */
  insert(tx: Tx, id: string): Promise<unknown>
  /** Any SQL, by the library. */
  execute(tx: Tx, text: string): Promise<unknown>
  /** Holds a connection of the pool until `work` has settled. */
  hold(work: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

type OpenerOf<Tx> = (url: string, max: number) => Promise<OpenLibrary<Tx>>

const openKysely: OpenerOf<import('kysely').Transaction<PaymentTable>> = async (url, max) => {
  const pool = new Pool({ connectionString: url, max })
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
    hold: (work) => db.connection().execute(work),
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
    async hold(work) {
      const runner = source.createQueryRunner()
      await runner.connect()
      await work().finally(() => runner.release())
    },
    close: () => source.destroy(),
  }
}

const openPrismaLibrary: OpenerOf<TestPrismaTransaction> = async (url, max) => {
  const prisma = await openPrisma(url, max)
  return {
    runner: fromPrisma(prisma),
    insert: async (tx, id) => tx.payment.create({ data: { id } }),
    execute: async (tx, text) => tx.$executeRawUnsafe(text),
    hold: (work) => prisma.$transaction(work, { timeout: 60_000 }),
    close: () => prisma.$disconnect(),
  }
}

/** Each with its own type of transaction, which the tests have no use for. */
export const LIBRARIES = {
  kysely: openKysely,
  TypeORM: openTypeOrm,
  Prisma: openPrismaLibrary,
} as unknown as Readonly<Record<string, OpenerOf<unknown>>>
