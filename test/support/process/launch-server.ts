import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../until.js'
import { enter, HERE, type Place } from './place.js'
import { forgetPid, notePids } from './temporary-folder.js'

export interface ServerLaunch {
  readonly binary: string
  /** Its file `log` gets the server's output. The folder belongs to the user of the server. */
  readonly folder: string
  /** Returns the arguments that make the server listen on the port. */
  arguments(port: number): readonly string[]
  isReady(pid: number): Promise<boolean>
  /** Default: a free port. */
  readonly port?: number | undefined
  /** Default: `HERE`. */
  readonly place?: Place | undefined
  /** The user of the server. Default: the user of this process. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined
}

export interface ServerProcess {
  readonly port: number
  readonly pid: number
  signal(signal: NodeJS.Signals): void
  /** Sends the signal to the process and its children. */
  signalAll(signal: NodeJS.Signals): void
  /** Sends the signal to the process only; resolves when it has ended. */
  end(signal: NodeJS.Signals): Promise<void>
  /** Sends SIGKILL to the process and its children; resolves when all have ended. */
  killAll(): Promise<void>
}

// Below the ports that the kernel assigns, also for the bus of a Redis cluster, which takes the port plus 10,000.
const LOWEST_PORT = 10_000
const PORTS = 12_000
const ATTEMPTS = 20
const RETRY_MS = 100
const START_TIMEOUT_MS = 20_000
const POLL_MS = 10
const PORT_IS_TAKEN = /Address already in use|Failed listening/

/** Starts a server; resolves when it is ready. If its port is taken, tries another, or a given port again. */
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

/** Returns the process, or its log if it ended before it was ready. */
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
    // In a namespace, `enter` sets the user, because only root may enter one.
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
    // Keeps the event loop alive until the child has ended.
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
      // A child that still runs holds the shared memory, so that the next server could not start.
      await until('the children are gone', async () => family.every(isDead))
    },
  }
}

function killFamily(folder: string, pid: number): number[] {
  // A stopped process starts no more children while they are listed.
  if (!sendSignal(pid, 'SIGSTOP')) return []
  const family = [pid, ...childrenOf(pid)]
  // Noted for the watchdog: a stopped child would not notice the end of its postmaster.
  notePids(folder, family)
  for (const each of family) sendSignal(each, 'SIGKILL')
  return family
}

/** Returns whether the process exists. */
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

/** Whether the process has ended, even if its parent has not collected its exit status. */
function isDead(pid: number): boolean {
  try {
    return /\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return true
  }
}
