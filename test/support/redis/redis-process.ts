import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { forgetPid, notePid, unrefStream } from '../process/watchdog.js'

/** Lines of redis.conf; a directive that occurs several times has a list of values. */
export type RedisConfig = Record<string, string | readonly string[]>

export interface RedisLaunch {
  binary: string
  folder: string
  config: RedisConfig
  /** Without one, a free port is chosen. */
  port?: number
  /** What the server writes to its log when it serves. */
  readyLine?: RegExp
  extraArguments?: readonly string[]
}

export interface RedisProcess {
  readonly port: number
  readonly pid: number
  signal(signal: NodeJS.Signals): void
  /** Sends the signal; resolves when the process is gone. */
  end(signal: NodeJS.Signals): Promise<void>
}

type Child = ChildProcessByStdio<null, Readable, Readable>

// Below the ports that the kernel hands out by itself; a cluster's bus takes the port plus 10,000.
const LOWEST_PORT = 10_000
const PORTS = 12_000
const ATTEMPTS = 20
const RETRY_MS = 100
const START_TIMEOUT_MS = 20_000
const PORT_IS_TAKEN = /Address already in use|Failed listening/
const READY = /Ready to accept connections/

/** Starts redis-server and resolves when it serves; takes another port when one is taken. */
export async function launchRedis(launch: RedisLaunch): Promise<RedisProcess> {
  for (let attempt = 1; ; attempt++) {
    const port = launch.port ?? LOWEST_PORT + Math.floor(Math.random() * PORTS)
    const started = await tryPort(launch, port)
    if (typeof started !== 'string') return started
    if (!PORT_IS_TAKEN.test(started) || attempt === ATTEMPTS) {
      throw new Error(`redis-server did not start:\n${started}`)
    }
    if (launch.port !== undefined) await delay(RETRY_MS)
  }
}

/** The process, or its log when it ended before it served. */
async function tryPort(launch: RedisLaunch, port: number): Promise<RedisProcess | string> {
  const configFile = join(launch.folder, 'redis.conf')
  await writeFile(configFile, renderConfig({ ...launch.config, port: String(port) }))
  const child = spawn(launch.binary, [configFile, ...(launch.extraArguments ?? [])], {
    cwd: launch.folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { pid } = child
  if (pid === undefined) return once(child, 'error').then(([error]) => String(error))
  notePid(launch.folder, pid)
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => {
      forgetPid(launch.folder)
      resolve()
    })
  })
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    // Whoever waits for the end must not be left in an empty event loop.
    child.ref()
    child.kill(signal)
    await gone
  }

  const log = await readLogUntil(child, launch.readyLine ?? READY)
  if (log !== undefined) {
    await end('SIGKILL')
    return log
  }
  return { port, pid, end, signal: (signal) => void child.kill(signal) }
}

/** Undefined when the line came; the log when the process ended first or took too long. */
async function readLogUntil(child: Child, line: RegExp): Promise<string | undefined> {
  let log = ''
  const failure = await new Promise<string | undefined>((resolve) => {
    const timer = setTimeout(() => resolve(`${log}\n(${line} did not come)`), START_TIMEOUT_MS)
    const read = (text: string): void => {
      log += text
      if (!line.test(log)) return
      clearTimeout(timer)
      resolve(undefined)
    }
    child.stdout.setEncoding('utf8').on('data', read)
    child.stderr.setEncoding('utf8').on('data', read)
    child.once('close', () => {
      clearTimeout(timer)
      resolve(log)
    })
  })
  // The server goes on writing; nobody reads it any more, and it must not hold the worker open.
  for (const stream of [child.stdout, child.stderr]) {
    stream.removeAllListeners('data').resume()
    unrefStream(stream)
  }
  child.unref()
  return failure
}

function renderConfig(config: RedisConfig): string {
  return Object.entries(config)
    .flatMap(([name, values]) => [values].flat().map((value) => `${name} ${value}\n`))
    .join('')
}
