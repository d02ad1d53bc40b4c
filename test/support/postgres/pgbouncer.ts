import { writeFileSync } from 'node:fs'
import { chown, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findProgram, type Program } from '../process/find-program.js'
import { launchServer } from '../process/launch-server.js'
import { removeTemporaryFolder, temporaryFolder } from '../process/temporary-folder.js'
import { type PostgresAddress, postgresAddress, SUPERUSER } from './postgres-address.js'
import { serverUser } from './postgres-user.js'

export const PGBOUNCER: Program = {
  variable: 'PGBOUNCER_BIN',
  names: ['pgbouncer'],
  package: 'pgbouncer',
  isPortable: true,
  // Debian installs it there, which is on the PATH of root only.
  otherFolders: ['/usr/sbin'],
  remedy:
    'Install it with `apt-get install -y pgbouncer` (Debian, Ubuntu) or `brew install pgbouncer` ' +
    '(macOS), or name the binary in the environment variable PGBOUNCER_BIN.',
}

export interface PgbouncerOptions {
  readonly poolMode: 'transaction' | 'session' | 'statement'
  /** The maximum number of server connections for each pair of a database and a role. */
  readonly size?: number
}

export interface Pgbouncer extends PostgresAddress {
  stop(): Promise<void>
}

const DEFAULT_SIZE = 20

/** Starts a pgbouncer in front of a Postgres or its proxy, for all databases and roles. */
export async function startPgbouncer(
  server: PostgresAddress,
  options: PgbouncerOptions,
): Promise<Pgbouncer> {
  const folder = await temporaryFolder('esa-pgbouncer-')
  const log = (): Promise<string> => readFile(join(folder, 'log'), 'utf8')
  const configFile = join(folder, 'pgbouncer.ini')
  await writeFile(join(folder, 'users'), `"${SUPERUSER}" ""\n`)
  const user = serverUser()
  if (user) await chown(folder, user.uid, user.gid)
  const pgbouncer = await launchServer({
    binary: findProgram(PGBOUNCER),
    folder,
    arguments(port) {
      writeFileSync(configFile, render(port, server, options))
      return [configFile]
    },
    isReady: async (pid) => (await log()).includes(`[${pid}] LOG process up`),
    user,
  })
  return {
    ...postgresAddress(pgbouncer.port),
    async stop() {
      await pgbouncer.end('SIGKILL')
      await removeTemporaryFolder(folder)
    },
  }
}

function render(
  port: number,
  server: PostgresAddress,
  { poolMode, size = DEFAULT_SIZE }: PgbouncerOptions,
): string {
  return `[databases]
* = host=${server.host} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = users
; Roles that the file does not name are looked up as this one.
auth_user = ${SUPERUSER}
pool_mode = ${poolMode}
default_pool_size = ${size}
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
`
}
