import { randomUUID } from 'node:crypto'
import { afterAll } from 'vitest'
import { type PostgresServer, startPostgres } from './postgres.js'
import type { PostgresVersion } from './postgres-binary.js'

export interface PostgresDatabase {
  readonly name: string
  /** Of the superuser. */
  readonly url: string
  /** Also while clients are connected to it. */
  drop(): Promise<void>
}

/** An empty database; takes a fraction of what a server of its own takes. */
export async function createDatabase(server: PostgresServer): Promise<PostgresDatabase> {
  const name = `test_${randomUUID().replaceAll('-', '')}`
  // The faster one with fsync off; before 15 the only one, which had no name.
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
 * The server that the tests of a file share, each with a database of its own; stopped after them.
 * To be called once, outside of a test: `const postgres = await sharedPostgres()`.
 */
export async function sharedPostgres(version?: PostgresVersion): Promise<PostgresServer> {
  const server = await startPostgres(version === undefined ? {} : { version })
  afterAll(() => server.stop())
  return server
}
