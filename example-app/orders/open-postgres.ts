import { fromPg, postgresStore } from 'express-service-auth/postgres'
import { StartError } from '../start-error.js'
import { connect, explained } from './connect.js'
import { openOutbox } from './outbox.js'

/**
 * Orders, records and the notifications of billing, in one database. `warn` is called with what may cost written
 * orders all the same.
 * @throws {StartError} when the address is malformed, or the database unreachable, unfit or without
 * its tables
 */
export async function openPostgres(databaseUrl: string, warn: (warning: string) => void) {
  const pool = await connect(databaseUrl)
  const store = postgresStore(fromPg(pool))
  try {
    const warnings = await store.check().catch((error: Error) => {
      throw new StartError(error.message)
    })
    for (const warning of warnings) warn(warning)
    await pool.query('select from orders limit 0')
    const outbox = await openOutbox(databaseUrl, (code) => {
      warn(`the outbox has failed (${code ?? 'no code'}), and goes on`)
    }).catch((error) => {
      // What Postgres says has a code; what pg-boss misses has none.
      if (error.code !== undefined) throw error
      throw new StartError('the tables of pg-boss are missing or old; npm run migrate makes them')
    })
    const close = async () => {
      await outbox.close()
      store.close()
      await pool.end()
    }
    return { pool, store, outbox, close }
  } catch (error) {
    store.close()
    await pool.end()
    throw explained(error)
  }
}

export type OpenPostgres = Awaited<ReturnType<typeof openPostgres>>
