import { writeFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { findProgram, type Program } from '../process/find-program.js'
import { launchServer, type ServerLaunch, type ServerProcess } from '../process/launch-server.js'
import { HERE, type Place } from '../process/place.js'
import { removeTemporaryFolder, temporaryFolder } from '../process/temporary-folder.js'
import { knowSecret } from '../secret-search/index.js'
import { sendCommand } from './redis-wire.js'

/** Lines of redis.conf; a directive that occurs several times has a list of values. */
export type RedisConfig = Record<string, string | readonly string[]>

export interface RedisOptions {
  /** More lines of redis.conf, such as `{ appendonly: 'yes', replicaof: '127.0.0.1 6379' }`. */
  config?: RedisConfig
  /** Default: `HERE`. */
  place?: Place
}

export interface RedisServer {
  readonly url: string
  readonly host: string
  readonly port: number
  /** Changes with each restart. */
  readonly pid: number
  /** Sends one command on a new connection; resolves with the text of the reply. */
  command(...words: string[]): Promise<string>
  /** Ends the server and removes its folder. */
  stop(): Promise<void>
  /** Simulates a crash: SIGKILL. The files stay, for `restart`. */
  kill(): Promise<void>
  /** Sends SIGSTOP: connections stay open, but nothing answers. */
  pause(): void
  /** Sends SIGCONT. */
  resume(): void
  /** Starts the server again on the same port, with its data or, if `keepData` is false, without. */
  restart(options?: { keepData?: boolean }): Promise<void>
}

export const REDIS_SERVER: Program = {
  variable: 'REDIS_SERVER',
  names: ['redis-server'],
  package: 'redis-server',
  isPortable: true,
  remedy:
    'Install it with `apt-get install -y redis-server` (Debian, Ubuntu) or `brew install redis` ' +
    '(macOS), or name the binary in the environment variable REDIS_SERVER.',
}

/** The configuration of every server, including sentinels. */
const COMMON_CONFIG: RedisConfig = { 'protected-mode': 'no', daemonize: 'no' }

const DATA_CONFIG: RedisConfig = {
  save: '""',
  appendonly: 'no',
  'repl-diskless-sync-delay': '0',
}

/** Starts a redis-server on a free port, in a new folder. */
export function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return startServer({ ...options, config: { ...DATA_CONFIG, ...options.config } })
}

export interface RedisServerOptions {
  readonly config: RedisConfig
  /** The text in the log that says that the server is ready. */
  readonly readyLine?: string
  readonly extraArguments?: readonly string[]
  readonly place?: Place
}

/** Starts a redis-server in any role. Beside `config`, it has `COMMON_CONFIG` and its address. */
export async function startServer({
  readyLine = 'Ready to accept connections',
  extraArguments = [],
  place = HERE,
  ...options
}: RedisServerOptions): Promise<RedisServer> {
  const folder = await temporaryFolder('esa-redis-')
  const config: RedisConfig = { ...COMMON_CONFIG, bind: place.host, ...options.config, dir: folder }
  for (const [name, values] of Object.entries(config)) knowPasswords([name, ...[values].flat()])
  const configFile = join(folder, 'redis.conf')
  const launch: ServerLaunch = {
    binary: findProgram(REDIS_SERVER),
    folder,
    place,
    arguments(port) {
      writeFileSync(configFile, render({ ...config, port: String(port) }))
      return [configFile, ...extraArguments]
    },
    async isReady(pid) {
      const lines = (await readFile(join(folder, 'log'), 'utf8')).split('\n')
      return lines.some((line) => line.startsWith(`${pid}:`) && line.includes(readyLine))
    },
  }
  let server: ServerProcess | undefined = await launchServer(launch)
  const { host } = place
  const { port } = server

  const end = async (): Promise<void> => {
    const ending = server
    server = undefined
    await ending?.end('SIGKILL')
  }
  const running = (): ServerProcess => {
    if (server) return server
    throw new Error('This redis-server is not running')
  }

  return {
    url: `redis://${host}:${port}`,
    host,
    port,
    get pid() {
      return running().pid
    },
    command(...words) {
      knowPasswords(words)
      return sendCommand({ host, port }, ...words)
    },
    pause: () => running().signal('SIGSTOP'),
    resume: () => running().signal('SIGCONT'),
    kill: end,
    async stop() {
      await end()
      await removeTemporaryFolder(folder)
    },
    async restart({ keepData = true } = {}) {
      server?.signal('SIGCONT')
      if (keepData && server) await sendCommand({ host, port }, 'SAVE')
      await end()
      if (!keepData) await removeData(folder)
      // With the data, keeps the configuration file, too, because sentinels write the server's role into it.
      const sameConfig = keepData && { arguments: () => [configFile, ...extraArguments] }
      server = await launchServer({ ...launch, port, ...sameConfig })
    },
  }
}

/** Tells the search for secrets the passwords in a command or in a line of the configuration. */
function knowPasswords(words: readonly string[]): void {
  const line = words.join(' ')
  const all = line.matchAll(/(?:^auth|requirepass|masterauth|primaryauth) (\S+)|(?:^| )>(\S+)/gi)
  for (const [, named, ofUser] of all) knowSecret('a Redis password', named ?? ofUser ?? '')
}

const render = (config: RedisConfig): string =>
  Object.entries(config)
    .flatMap(([name, values]) => [values].flat().map((value) => `${name} ${value}\n`))
    .join('')

async function removeData(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    await rm(join(folder, name), { recursive: true })
  }
}
