import { findProgram } from '../process/find-program.js'

/** Returns the path of a redis-server; root installs it if there is none. */
export const findRedisServer = (): string =>
  findProgram({
    variable: 'REDIS_SERVER',
    names: ['redis-server'],
    package: 'redis-server',
    remedy:
      'Install it with `apt-get install -y redis-server` (Debian, Ubuntu) or `brew install redis` ' +
      '(macOS), or name the binary in the environment variable REDIS_SERVER.',
  })
