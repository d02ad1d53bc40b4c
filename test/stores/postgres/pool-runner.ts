import pg, { type Pool, type PoolClient } from 'pg'
import type { TransactionRunner } from '../../../src/stores/postgres/runner.js'

/** A runner that does nothing but what it is asked: what the SQL does is in sight. */
export function poolRunner(pool: Pool): TransactionRunner<PoolClient> {
  return {
    async transaction(work) {
      const client = await pool.connect()
      try {
        await client.query('begin')
        const result = await work(client)
        await client.query('commit')
        return result
      } catch (error) {
        await client.query('rollback').catch(() => {})
        throw error
      } finally {
        client.release()
      }
    },
    query: async (client, text, values) => (await (client ?? pool).query(text, [...values])).rows,
  }
}

/** A pool whose connections end with the server. */
export function openPool(url: string, max = 10): Pool {
  const pool = new pg.Pool({ connectionString: url, max, connectionTimeoutMillis: 2000 })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}
