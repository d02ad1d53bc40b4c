// What the adapters of Postgres take, and that each gives a handler the library's own transaction.
// Compiled with the tests, not as a user's program: drizzle's own declarations do not all compile.
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import type { Kysely, Transaction } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import type { DataSource, EntityManager } from 'typeorm'
import { fromDrizzle } from '../../../../src/stores/postgres/adapters/drizzle.js'
import { fromKysely } from '../../../../src/stores/postgres/adapters/kysely.js'
import { fromPg } from '../../../../src/stores/postgres/adapters/pg.js'
import { fromPostgresJs } from '../../../../src/stores/postgres/adapters/postgres-js.js'
import { fromTypeOrm } from '../../../../src/stores/postgres/adapters/type-orm.js'
import type { TransactionRunner } from '../../../../src/stores/postgres/runner.js'

type Same<One, Other> =
  (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false
type TransactionOf<Runner> = Runner extends TransactionRunner<infer Tx> ? Tx : never

const pool = new pg.Pool()
const onPg = fromPg(pool)
export const pgClient: Same<TransactionOf<typeof onPg>, pg.PoolClient> = true

const client = postgres({
  types: { point: { to: 600, from: [600], serialize: String, parse: String } },
})
const onPostgresJs = fromPostgresJs(client)
export const postgresJsTransaction: Same<
  TransactionOf<typeof onPostgresJs>,
  postgres.TransactionSql<{ point: string }>
> = true
export const plainTransaction: TransactionRunner<postgres.TransactionSql> = fromPostgresJs(
  postgres(),
)

const db = drizzle(pool, { schema: {} })
const onDrizzle = fromDrizzle(db, sql)
type DrizzleTransaction = Parameters<Parameters<typeof db.transaction>[0]>[0]
export const drizzleTransaction: Same<TransactionOf<typeof onDrizzle>, DrizzleTransaction> = true

export const kyselyTransaction = (
  kysely: Kysely<{ a: { b: string } }>,
): TransactionRunner<Transaction<{ a: { b: string } }>> => fromKysely(kysely)
export const typeOrmTransaction = (source: DataSource): TransactionRunner<EntityManager> =>
  fromTypeOrm(source)

// @ts-expect-error a client is no pool
fromPg(new pg.Client())
// @ts-expect-error nor is an address
fromPg('postgres://127.0.0.1')
// @ts-expect-error nor is the client of a pool
fromPg(await pool.connect())
// @ts-expect-error what `begin` gives begins nothing
fromPostgresJs(await client.reserve().then((reserved) => reserved.unsafe))
// @ts-expect-error drizzle's sql is needed
fromDrizzle(db)
// @ts-expect-error a database on a client has no pool
fromDrizzle(drizzle(new pg.Client()), sql)
