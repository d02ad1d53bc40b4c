import { randomUUID } from 'node:crypto'
import { afterAll } from 'vitest'
import { type PostgresServer, startPostgres } from './postgres.js'
import type { PostgresVersion } from './postgres-binary.js'

export interface PostgresDatabase {
  readonly name: string
  /** The URL for the superuser. */
  readonly url: string
  /** Drops the database, even while clients are connected to it. */
  drop(): Promise<void>
}

/** Creates an empty database, which takes a fraction of the time of a new server. */
export async function createDatabase(server: PostgresServer): Promise<PostgresDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  // The faster strategy if fsync is off. Before Postgres 15, it is the only one, and there is no option.
  const strategy = server.major >= 15 ? 'strategy file_copy' : ''
  await server.query(`create database ${name} template template0 ${strategy}`)
  return {
    name,
    url: server.urlFor(name),
    async drop() {
      await server.query(`drop database if exists ${name} with (force)`)
    },
  }
}

/**
 * Starts the server that the tests of a file share, each with its own database; stops it after them. Call it
 * once, outside of tests: `const postgres = await sharedPostgres()`.
 */
export async function sharedPostgres(version?: PostgresVersion): Promise<PostgresServer> {
  const server = await startPostgres(version === undefined ? {} : { version })
  afterAll(() => server.stop())
  return server
}
