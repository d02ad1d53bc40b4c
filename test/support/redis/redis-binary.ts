import { findProgram } from '../process/find-program.js'

/** The path of a redis-server, which may be installed for it. */
export const findRedisServer = (): string =>
  findProgram({
    variable: 'REDIS_SERVER',
    names: ['redis-server'],
    package: 'redis-server',
    remedy:
      'Install it with `apt-get install -y redis-server` (Debian, Ubuntu) or `brew install redis` ' +
      '(macOS), or name the binary in the environment variable REDIS_SERVER.',
  })
