import pg, { type Pool } from 'pg'
import type { TransactionRunner } from '../../../src/stores/postgres/runner.js'
import { createStatements } from '../../../src/stores/postgres/sql/statements.js'
import type { StoreContext } from '../../../src/stores/postgres/store-context.js'

/** A pool whose connections end with the server. */
export function openPool(url: string, max = 10): Pool {
  const pool = new pg.Pool({ connectionString: url, max, connectionTimeoutMillis: 2000 })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

const LIMITS = { acquireMs: 2000, transactionMs: 5000, resolveMs: 2000 }

/** What a store on a runner gives its parts. */
export const contextOf = <Tx>(
  runner: TransactionRunner<Tx>,
  schema = 'service_auth',
): StoreContext<Tx> => ({ runner, schema, statements: createStatements(schema), limits: LIMITS })
