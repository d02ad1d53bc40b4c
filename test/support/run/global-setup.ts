import type { TestProject } from 'vitest/node'
import { makeSpareKeys } from '../issuer/spare-keys.js'
import { findPgbouncer } from '../postgres/pgbouncer-binary.js'
import { type PostgresFound, preparePostgres } from '../postgres/postgres-template.js'
import { findRedisServer } from '../redis/redis-binary.js'

declare module 'vitest' {
  export interface ProvidedContext {
    redisServer: { binary: string } | { fault: string }
    pgbouncer: { binary: string } | { fault: string }
    postgres: PostgresFound | { fault: string }
  }
}

/**
 * Finds or installs the servers before the workers start, so that they do not install them at the same time.
 * Does not throw if a server is missing: the tests that need it fail with the message, and the others run.
 */
export default function setup(project: TestProject): void {
  makeSpareKeys()
  project.provide(
    'redisServer',
    orFault(() => ({ binary: findRedisServer() })),
  )
  project.provide(
    'pgbouncer',
    orFault(() => ({ binary: findPgbouncer() })),
  )
  project.provide('postgres', orFault(preparePostgres))
}

function orFault<Found>(find: () => Found): Found | { fault: string } {
  try {
    return find()
  } catch (error) {
    return { fault: (error as Error).message }
  }
}
