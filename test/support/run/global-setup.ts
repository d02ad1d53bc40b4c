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
 * Finds or installs the servers once, before the workers start, so that they cannot race for it.
 * What is not found is not thrown here: the tests that do not need it still run, those that do fail
 * with this text.
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
