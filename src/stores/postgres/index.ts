/**
 * The write, its record and its response in one transaction.
 *
 * @module express-service-auth/postgres
 */

export type { PostgresEvent } from '../../base/decision/store-event.js'
export { type DrizzleLike, fromDrizzle, type SqlTag } from './adapters/drizzle.js'
export { fromKysely, type KyselyLike } from './adapters/kysely.js'
export { fromPg, type PgPoolLike } from './adapters/pg.js'
export { fromPostgresJs, type PostgresJsLike } from './adapters/postgres-js.js'
export { fromPrisma, type PrismaLike } from './adapters/prisma.js'
export { type DataSourceLike, fromTypeOrm } from './adapters/type-orm.js'
export { TransactionEndedError } from './guard.js'
export type { PostgresStoreOptions } from './postgres-options.js'
export { type PostgresStore, postgresStore } from './postgres-store.js'
export type {
  Isolation,
  Row,
  StatementLimits,
  TransactionLimits,
  TransactionRunner,
} from './runner.js'
export { type MigrationOptions, migration } from './schema.js'
export type { SweepOptions } from './sweep.js'
