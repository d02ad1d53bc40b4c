import { makeSpareKeys } from '../issuer/spare-keys.js'
import { PGBOUNCER } from '../postgres/pgbouncer.js'
import { installPostgres } from '../postgres/postgres-binary.js'
import { findProgram } from '../process/find-program.js'
import { REDIS_SERVER } from '../redis/redis.js'

/**
 * Installs the servers that are missing before the workers start, so that they do not install them at the same time.
 * If one cannot be installed, the tests that need it fail, and the others run.
 */
export default function setup(): void {
  makeSpareKeys()
  for (const program of [REDIS_SERVER, PGBOUNCER]) {
    try {
      process.env[program.variable] = findProgram(program)
    } catch (error) {
      process.stderr.write(`${(error as Error).message}\n`)
      // So that no worker tries again.
      process.env[program.variable] ??= 'nothing'
    }
  }
  installPostgres()
}
