import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../until.js'
import { enter, HERE, type Place } from './place.js'
import { forgetPid, notePids } from './watchdog.js'

export interface ServerLaunch {
  readonly binary: string
  /** Holds `log`, to which the server's output goes; belongs to the user who runs the server. */
  readonly folder: string
  /** The command line that makes it listen on the port. */
  arguments(port: number): readonly string[]
  isReady(pid: number): Promise<boolean>
  /** Without one, a free port is chosen. */
  readonly port?: number | undefined
  /** Here without it. */
  readonly place?: Place | undefined
  /** Who runs the server; by default the user of this process. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
}

export interface ServerProcess {
  readonly port: number
  readonly pid: number
  signal(signal: NodeJS.Signals): void
  /** Also to its children. */
  signalAll(signal: NodeJS.Signals): void
  /** Sends the signal to the process itself; resolves when it is gone. */
  end(signal: NodeJS.Signals): Promise<void>
  /** SIGKILL to the process and to all its children; resolves when all are gone. */
  killAll(): Promise<void>
}

// Below the ports that the kernel hands out by itself; the bus of a Redis cluster takes the port plus 10,000.
const LOWEST_PORT = 10_000
const PORTS = 12_000
const ATTEMPTS = 20
const RETRY_MS = 100
const START_TIMEOUT_MS = 20_000
const POLL_MS = 10
const PORT_IS_TAKEN = /Address already in use|Failed listening/

/** Starts a server; resolves when it serves. Takes another port when one is taken. */
export async function launchServer(launch: ServerLaunch): Promise<ServerProcess> {
  for (let attempt = 1; ; attempt++) {
    const port = launch.port ?? LOWEST_PORT + Math.floor(Math.random() * PORTS)
    const started = await tryPort(launch, port)
    if (typeof started !== 'string') return started
    if (!PORT_IS_TAKEN.test(started) || attempt === ATTEMPTS) {
      throw new Error(`${launch.binary} did not start:\n${started}`)
    }
    if (launch.port !== undefined) await delay(RETRY_MS)
  }
}

/** The process, or its log when it ended before it served. */
async function tryPort(launch: ServerLaunch, port: number): Promise<ServerProcess | string> {
  const { folder } = launch
  const logFile = join(folder, 'log')
  const log = openSync(logFile, 'a')
  const { size } = fstatSync(log)
  const { place = HERE, user } = launch
  const [program = '', ...args] = [...enter(place, user), launch.binary, ...launch.arguments(port)]
  const child = spawn(program, args, {
    cwd: folder,
    stdio: ['ignore', log, log],
    // Only root enters a place; the user is told there.
    ...(place.namespace === undefined && user),
  })
  closeSync(log)
  const { pid } = child
  if (pid === undefined) return once(child, 'error').then(([error]) => String(error))
  notePids(folder, [pid])
  let isGone = false
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => {
      isGone = true
      forgetPid(folder)
      resolve()
    })
  })
  child.unref()
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    // Whoever waits for the end must not be left in an empty event loop.
    child.ref()
    child.kill(signal)
    await gone
  }

  const deadline = Date.now() + START_TIMEOUT_MS
  while (!(await launch.isReady(pid))) {
    if (Date.now() > deadline) await end('SIGKILL')
    if (isGone) return readFileSync(logFile).toString('utf8', size)
    await delay(POLL_MS)
  }
  return {
    port,
    pid,
    end,
    signal: (signal) => void child.kill(signal),
    signalAll(signal) {
      for (const each of [pid, ...childrenOf(pid)]) sendSignal(each, signal)
    },
    async killAll() {
      const family = killFamily(folder, pid)
      await end('SIGKILL')
      // A child that is still going holds the shared memory, and another server could not start.
      await until('the children are gone', async () => family.every(isDead))
    },
  }
}

function killFamily(folder: string, pid: number): number[] {
  // One that stands still gets no more children while its children are counted.
  if (!sendSignal(pid, 'SIGSTOP')) return []
  const family = [pid, ...childrenOf(pid)]
  // The watchdog has to know them all: one that stands still does not see that the postmaster died.
  notePids(folder, family)
  for (const each of family) sendSignal(each, 'SIGKILL')
  return family
}

/** Whether there is such a process. */
function sendSignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
    throw error
  }
}

function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return text.split(' ').filter(Boolean).map(Number)
}

/** Also one for which nobody has waited yet. */
function isDead(pid: number): boolean {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return true
  }
}
