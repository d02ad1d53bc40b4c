import { writeFileSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import { launchServer, type ServerLaunch, type ServerProcess } from '../process/launch-server.js'
import { HERE, type Place } from '../process/place.js'
import { guardFolder } from '../process/watchdog.js'
import { knowRedisWords } from '../secret-search/index.js'
import { findRedisServer } from './redis-binary.js'
import { sendCommand } from './redis-wire.js'

/** Lines of redis.conf; a directive that occurs several times has a list of values. */
export type RedisConfig = Record<string, string | readonly string[]>

export interface RedisOptions {
  /** More lines of redis.conf, such as `{ appendonly: 'yes', replicaof: '127.0.0.1 6379' }`. */
  config?: RedisConfig
  /** Where it runs: here without it. */
  place?: Place
}

export interface RedisServer {
  readonly url: string
  readonly host: string
  readonly port: number
  /** Another one after every restart. */
  readonly pid: number
  /** Sends one command on a connection of its own; resolves with the reply's text. */
  command(...words: string[]): Promise<string>
  /** Ends the server and removes its folder. */
  stop(): Promise<void>
  /** The crash: SIGKILL. What was on disk stays there for `restart`. */
  kill(): Promise<void>
  /** SIGSTOP: connections stay open, nothing answers. */
  pause(): void
  /** SIGCONT. */
  resume(): void
  /** Again on the same port, with the data (the default) or, where `keepData` is false, empty. */
  restart(options?: { keepData?: boolean }): Promise<void>
}

/** What every server of ours is told, sentinels included. */
const COMMON_CONFIG: RedisConfig = { 'protected-mode': 'no', daemonize: 'no' }

const DATA_CONFIG: RedisConfig = {
  save: '""',
  appendonly: 'no',
  'repl-diskless-sync-delay': '0',
}

/** Starts a redis-server of its own on a free port, in a folder of its own. */
export function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  return startServer({ ...options, config: { ...DATA_CONFIG, ...options.config } })
}

export interface RedisServerOptions {
  readonly config: RedisConfig
  /** What the server writes to its log when it serves. */
  readonly readyLine?: string
  readonly extraArguments?: readonly string[]
  readonly place?: Place
}

/** As `startRedis`, for whatever redis-server can be, with nothing configured but the address. */
export async function startServer({
  readyLine = 'Ready to accept connections',
  extraArguments = [],
  place = HERE,
  ...options
}: RedisServerOptions): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'esa-redis-'))
  const callOffWatchdog = guardFolder(folder)
  const config: RedisConfig = { ...COMMON_CONFIG, bind: place.host, ...options.config, dir: folder }
  for (const [name, values] of Object.entries(config)) knowRedisWords([name, ...[values].flat()])
  const configFile = join(folder, 'redis.conf')
  const launch: ServerLaunch = {
    binary: redisBinary(),
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
      knowRedisWords(words)
      return sendCommand({ host, port }, ...words)
    },
    pause: () => running().signal('SIGSTOP'),
    resume: () => running().signal('SIGCONT'),
    kill: end,
    async stop() {
      await end()
      await rm(folder, { recursive: true, force: true })
      callOffWatchdog()
    },
    async restart({ keepData = true } = {}) {
      server?.signal('SIGCONT')
      if (keepData && server) await sendCommand({ host, port }, 'SAVE')
      await end()
      if (!keepData) await removeData(folder)
      // A server that keeps its data keeps what sentinels have written into its configuration.
      const known = keepData && { arguments: () => [configFile, ...extraArguments] }
      server = await launchServer({ ...launch, port, ...known })
    },
  }
}

const render = (config: RedisConfig): string =>
  Object.entries(config)
    .flatMap(([name, values]) => [values].flat().map((value) => `${name} ${value}\n`))
    .join('')

/** The path that the global setup has found. */
function redisBinary(): string {
  // Beside the tests there is the soak, a program of its own.
  if (process.env['VITEST'] === undefined) return findRedisServer()
  const found = inject('redisServer')
  if ('fault' in found) throw new Error(found.fault)
  return found.binary
}

async function removeData(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    await rm(join(folder, name), { recursive: true })
  }
}
