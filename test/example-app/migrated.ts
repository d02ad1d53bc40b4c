import type { PostgresServer } from '../support/postgres/postgres.js'
import { createDatabase } from '../support/postgres/postgres-database.js'
import { run } from './run.js'

/** A database with all that `example-app/migrate.ts` makes; resolves with its address. */
export async function migratedDatabase(postgres: PostgresServer): Promise<string> {
  const { url } = await createDatabase(postgres)
  const { code, stderr } = await (await run('migrate.ts', [], { DATABASE_URL: url })).finished
  if (code !== 0) throw new Error(stderr)
  return url
}
