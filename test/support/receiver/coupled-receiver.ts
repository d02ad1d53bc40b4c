import type { RequestHandler } from 'express'
import type { CoupledIdempotencyOptions } from 'express-service-auth'
import { Pool, type PoolClient, type PoolConfig } from 'pg'
import { onTestFinished } from 'vitest'
import { fromPg } from '../../../src/stores/postgres/adapters/pg.js'
import type { PostgresStoreOptions } from '../../../src/stores/postgres/postgres-options.js'
import { type PostgresStore, postgresStore } from '../../../src/stores/postgres/postgres-store.js'
import type { TransactionRunner } from '../../../src/stores/postgres/runner.js'
import { migration } from '../../../src/stores/postgres/schema.js'
import type { PostgresServer } from '../postgres/postgres.js'
import { createDatabase } from '../postgres/postgres-database.js'
import { EXPRESS_MAJORS, type ExpressModule } from './express-majors.js'
import type { Receiver } from './open-receiver.js'
import { type OrdersOptions, openOrders } from './order-receiver.js'

/** A table with a row for each write of a handler. */
const EFFECTS = 'create table effect (id bigserial primary key, key text not null, note text)'

/** A database with the tables of the store and the table `effect`, into which handlers write. */
export interface Ledger {
  /** The name of the database. */
  readonly name: string
  readonly url: string
  query<R extends Record<string, unknown>>(text: string, values?: readonly unknown[]): Promise<R[]>
  /** Counts the effects of a key. */
  effects(key: string): Promise<number>
  /** Counts the records of the store. */
  records(): Promise<number>
  drop(): Promise<void>
}

export async function createLedger(server: PostgresServer): Promise<Ledger> {
  const database = await createDatabase(server)
  const query = <R extends Record<string, unknown>>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<R[]> => server.query<R>(text, values, database.name)
  await query(migration())
  await query(EFFECTS)
  return {
    name: database.name,
    url: database.url,
    query,
    async effects(key) {
      const [row] = await query<{ n: string }>('select count(*) as n from effect where key = $1', [
        key,
      ])
      return Number(row?.n)
    },
    async records() {
      const [row] = await query<{ n: string }>('select count(*) as n from service_auth.idempotency')
      return Number(row?.n)
    },
    drop: () => database.drop(),
  }
}

/** A receiver with a coupled store on pg. */
export interface CoupledReceiver extends Receiver {
  readonly store: PostgresStore<PoolClient>
  readonly pool: Pool
}

export interface CoupledOptions {
  readonly url: string
  readonly express?: ExpressModule
  readonly pool?: PoolConfig
  readonly store?: PostgresStoreOptions
  readonly options?: Partial<CoupledIdempotencyOptions>
  /** More options, or a function that makes them from the store, such as for a single use in its transaction. */
  readonly more?:
    | Partial<OrdersOptions>
    | ((store: PostgresStore<PoolClient>) => Partial<OrdersOptions>)
  /** Replaces the runner on pg, for example by a wrapper. */
  readonly runner?: (onPg: TransactionRunner<PoolClient>) => TransactionRunner<PoolClient>
  /** Makes the handler. */
  handler(store: PostgresStore<PoolClient>): RequestHandler
}

/** Opens a coupled receiver, which is closed after the test. */
export async function openCoupled(given: CoupledOptions): Promise<CoupledReceiver> {
  const { url, handler, options, more, runner = (onPg) => onPg } = given
  const express = given.express ?? (EXPRESS_MAJORS[1]?.express as ExpressModule)
  const pool = new Pool({ connectionString: url, ...given.pool })
  const store = postgresStore(runner(fromPg(pool)), {
    sweepSeconds: false,
    acquireMs: 10_000,
    ...given.store,
  })
  const receiver = await openOrders({
    ...(typeof more === 'function' ? more(store) : more),
    express,
    store,
    ...(options !== undefined && { options }),
    handler: handler(store),
  })
  onTestFinished(async () => {
    await receiver.close()
    store.close()
    await pool.end()
  })
  return Object.assign(receiver, { store, pool })
}

/** Writes an effect under the request's key in the transaction of its run. */
export const writeEffect = async (
  store: PostgresStore<PoolClient>,
  request: Parameters<RequestHandler>[0],
): Promise<void> => {
  const { key } = request.idempotency as { key: string }
  await store.transactionOf(request).query('insert into effect (key) values ($1)', [key])
}
