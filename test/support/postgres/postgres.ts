import { execFile } from 'node:child_process'
import { statfsSync } from 'node:fs'
import { appendFile, chown, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Client, type QueryResult } from 'pg'
import { launchServer, type ServerLaunch, type ServerProcess } from '../process/launch-server.js'
import { HERE, type Place } from '../process/place.js'
import { removeTemporaryFolder, temporaryFolder } from '../process/temporary-folder.js'
import { type PostgresAddress, postgresAddress, SUPERUSER } from './postgres-address.js'
import type { PostgresVersion } from './postgres-binary.js'
import { postgresTemplate } from './postgres-template.js'
import { serverUser } from './postgres-user.js'

/** Lines of postgresql.conf. */
export type PostgresSettings = Readonly<Record<string, string>>

export interface PostgresOptions {
  /** Default: 15. */
  readonly version?: PostgresVersion
  /** More lines of postgresql.conf, such as `{ fsync: 'on' }`. */
  readonly settings?: PostgresSettings
  /** Makes it a standby of this server, whose data it copies, until `select pg_promote()`. */
  readonly standbyOf?: PostgresServer
  /** Where it runs; there, everybody may log in. Default: this process's network. */
  readonly place?: Place
  /** Default: a free port. */
  readonly port?: number
}

type Row = Record<string, unknown>

export interface PostgresServer extends PostgresAddress {
  readonly major: number
  /**
   * Runs a statement as the superuser, on a new connection; resolves with its rows. Without values, `text` may
   * have several statements, and the rows are those of the last.
   */
  query<R extends Row = Row>(
    text: string,
    values?: readonly unknown[],
    database?: string,
  ): Promise<R[]>
  /** Ends the server and removes its folder. */
  stop(): Promise<void>
  /** Ends the server as `pg_ctl stop -m immediate` does; `restart` recovers from the WAL. */
  stopImmediate(): Promise<void>
  /** Simulates a crash: SIGKILL to the postmaster and its children. The files stay. */
  kill(): Promise<void>
  /** Sends SIGSTOP to all its processes: connections stay open, but nothing answers. */
  pause(): void
  /** Sends SIGCONT to them. */
  resume(): void
  /** Starts the server again on the same port. A server that still runs ends with a checkpoint first. */
  restart(): Promise<void>
}

const DEFAULT_SETTINGS: PostgresSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '16MB',
  // Only a crash of the machine needs fsync, and tests crash processes only.
  fsync: 'off',
  // Puts the segments in the server's folder, which is removed even if the server is killed.
  dynamic_shared_memory_type: 'mmap',
  log_line_prefix: '%m [%p] %q%u@%d ',
  timezone: 'UTC',
}

/** Lines of pg_hba.conf for a place with its own network, where other hosts connect. */
const OPEN_TO_ALL = 'host all all all trust\nhost replication all all trust\n'

const TMPFS_FOLDER = '/dev/shm'
/** Enough for all servers that run at once, with the data that tests write. */
const TMPFS_NEEDED_BYTES = 2 * 1024 ** 3

const run = promisify(execFile)

/** Starts a Postgres, by default on a free port of 127.0.0.1, in a new folder. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const template = await postgresTemplate(options.version ?? 15)
  const folder = await temporaryFolder('esa-postgres-', quickestFolder())
  const data = join(folder, 'data')
  const { standbyOf, place = HERE } = options
  const makeData = (): Promise<unknown> =>
    standbyOf
      ? backUp(join(template.bin, 'pg_basebackup'), standbyOf, data)
      : run('cp', ['-a', template.data, data])
  await fill(folder, makeData, { ...DEFAULT_SETTINGS, ...addressOf(place), ...options.settings })
  if (place.namespace !== undefined) await appendFile(join(data, 'pg_hba.conf'), OPEN_TO_ALL)
  const launch: ServerLaunch = {
    binary: join(template.bin, 'postgres'),
    folder,
    arguments: (port) => ['-D', data, '-p', String(port)],
    isReady: (pid) => isReady(data, pid),
    place,
    user: serverUser(),
  }
  let server: ServerProcess | undefined = await launchServer({ ...launch, port: options.port })
  const { port } = server

  const end = async (signal: NodeJS.Signals): Promise<void> => {
    const ending = server
    server = undefined
    await ending?.end(signal)
  }
  const address = postgresAddress(port, place.host)

  return {
    ...address,
    major: template.major,
    query: (text, values = [], database = 'postgres') =>
      queryOnce(address.urlFor(database), text, values),
    stopImmediate: () => end('SIGQUIT'),
    async kill() {
      const killed = server
      server = undefined
      const segment = await sharedMemorySegment(data)
      await killed?.killAll()
      // A killed postmaster leaves this segment, and the kernel allows only a few thousand.
      await run('ipcrm', ['-m', segment])
    },
    pause: () => server?.signalAll('SIGSTOP'),
    resume: () => server?.signalAll('SIGCONT'),
    async stop() {
      await end('SIGQUIT')
      await removeTemporaryFolder(folder)
    },
    async restart() {
      await end('SIGINT')
      server = await launchServer({ ...launch, port })
    },
  }
}

/**
 * Returns a folder in memory if it has room, because a cluster is a thousand small files, which take ten times
 * as long on a disk.
 */
function quickestFolder(): string {
  try {
    const { bavail, bsize } = statfsSync(TMPFS_FOLDER)
    return bavail * bsize >= TMPFS_NEEDED_BYTES ? TMPFS_FOLDER : tmpdir()
  } catch {
    return tmpdir()
  }
}

/** In a namespace, the server listens on all addresses, because `moveAddress` may add one. */
const addressOf = ({ namespace }: Place): PostgresSettings =>
  namespace === undefined ? {} : { listen_addresses: '*' }

/** Fills the server's folder with a cluster and its settings. */
async function fill(
  folder: string,
  makeData: () => Promise<unknown>,
  settings: PostgresSettings,
): Promise<void> {
  const user = serverUser()
  if (user) await chown(folder, user.uid, user.gid)
  await makeData()
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${escaped(value)}'\n`)
  await appendFile(join(folder, 'data', 'postgresql.conf'), `\n${lines.join('')}`)
}

/** Copies the data of a running server, with the settings that make the copy its standby. */
function backUp(program: string, { host, port }: PostgresServer, data: string): Promise<unknown> {
  const from = ['-h', host, '-p', String(port), '-U', SUPERUSER]
  const how = ['--checkpoint=fast', '--no-sync', '--write-recovery-conf']
  return run(program, [...from, ...how, '-D', data], { cwd: dirname(data), ...serverUser() })
}

/** Returns the id of the shared memory segment by which a postmaster detects another one in its folder. */
async function sharedMemorySegment(data: string): Promise<string> {
  const lines = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n')
  return lines[6]?.trim().split(/\s+/)[1] ?? ''
}

/** Whether the postmaster has written `ready` into the eighth line of its file. */
async function isReady(data: string, pid: number): Promise<boolean> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  return lines[0] === String(pid) && lines[7]?.trim() === 'ready'
}

const escaped = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll("'", "''")

async function queryOnce<R extends Row>(
  url: string,
  text: string,
  values: readonly unknown[],
): Promise<R[]> {
  const client = new Client({ connectionString: url })
  // An error of the connection also rejects the query, so this event needs no handling.
  client.on('error', () => {})
  await client.connect()
  try {
    const result: QueryResult<R> | QueryResult<R>[] = await client.query<R>(text, [...values])
    const [last] = [result].flat().slice(-1)
    return last?.rows ?? []
  } finally {
    await client.end()
  }
}
