import { findProgram } from '../process/find-program.js'

/** Returns the path of a redis-server; what is missing is installed by root, and unpacked by others. */
export const findRedisServer = (): string =>
  findProgram({
    variable: 'REDIS_SERVER',
    names: ['redis-server'],
    package: 'redis-server',
    isPortable: true,
    remedy:
      'Install it with `apt-get install -y redis-server` (Debian, Ubuntu) or `brew install redis` ' +
      '(macOS), or name the binary in the environment variable REDIS_SERVER.',
  })
