import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import pg from 'pg'
import { expect, it, onTestFinished } from 'vitest'
import { fromDrizzle } from '../../../../src/stores/postgres/adapters/drizzle.js'
import { sharedPostgres } from '../../../support/postgres/postgres-database.js'
import { succeeds, until } from '../../../support/until.js'

const postgres = await sharedPostgres()

// An error that nobody listens for would end the process: it fails the run.
it('survives the loss of a client that the pool had before', async () => {
  const pool = new pg.Pool({ connectionString: postgres.url, max: 1 })
  onTestFinished(() => pool.end())
  const db = drizzle(pool)
  await db.execute(sql`select 1`)
  const lost = fromDrizzle(db, sql).transaction(
    async (tx) => {
      const { rows } = await tx.execute(sql`select pg_backend_pid() as pid`)
      await postgres.query(`select pg_terminate_backend(${rows[0]?.['pid']})`)
      await until('it is lost', async () => !(await succeeds(tx.execute(sql`select 1`))))
      throw new Error('lost')
    },
    { acquireMs: 1000, transactionMs: 5000 },
  )
  await expect(lost).rejects.toThrow()
})
