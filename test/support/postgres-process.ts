import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { serverUser } from './postgres-user.js'
import { forgetPid, notePids } from './watchdog.js'

export interface PostgresLaunch {
  readonly binary: string
  /** Holds `data` and `log`. */
  readonly folder: string
  /** Without one, a free port is chosen. */
  readonly port?: number
}

export interface PostgresProcess {
  readonly port: number
  readonly pid: number
  /** To the postmaster and to all its children. */
  signalAll(signal: NodeJS.Signals): void
  /** Sends the signal to the postmaster; resolves when it is gone. */
  end(signal: NodeJS.Signals): Promise<void>
}

// Below the ports that the kernel hands out by itself.
const LOWEST_PORT = 10_000
const PORTS = 22_000
const ATTEMPTS = 20
const RETRY_MS = 100
const START_TIMEOUT_MS = 20_000
const POLL_MS = 10
const PORT_IS_TAKEN = /Address already in use/

/** Starts Postgres and resolves when it serves; takes another port when one is taken. */
export async function launchPostgres(launch: PostgresLaunch): Promise<PostgresProcess> {
  for (let attempt = 1; ; attempt++) {
    const port = launch.port ?? LOWEST_PORT + Math.floor(Math.random() * PORTS)
    const started = await tryPort(launch, port)
    if (typeof started !== 'string') return started
    if (!PORT_IS_TAKEN.test(started) || attempt === ATTEMPTS) {
      throw new Error(`Postgres did not start:\n${started}`)
    }
    if (launch.port !== undefined) await delay(RETRY_MS)
  }
}

/** The process, or its log when it ended before it served. */
async function tryPort(launch: PostgresLaunch, port: number): Promise<PostgresProcess | string> {
  const { folder } = launch
  const data = join(folder, 'data')
  const logFile = join(folder, 'log')
  const log = openSync(logFile, 'a')
  const before = readFileSync(logFile, 'utf8').length
  const child = spawn(launch.binary, ['-D', data, '-p', String(port)], {
    cwd: data,
    stdio: ['ignore', log, log],
    ...serverUser(),
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
  while (!(await isReady(data, pid))) {
    if (Date.now() > deadline) await end('SIGKILL')
    if (isGone) return readFileSync(logFile, 'utf8').slice(before)
    await delay(POLL_MS)
  }
  const signalAll = (signal: NodeJS.Signals): void => signalFamily(folder, pid, signal)
  return { port, pid, end, signalAll }
}

/** The postmaster writes its state into the eighth line of its file. */
async function isReady(data: string, pid: number): Promise<boolean> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  return lines[0] === String(pid) && lines[7]?.trim() === 'ready'
}

function signalFamily(folder: string, pid: number, signal: NodeJS.Signals): void {
  // One that stands still gets no more children while its children are counted.
  if (!sendSignal(pid, 'SIGSTOP')) return
  const family = [pid, ...childrenOf(pid)]
  // The watchdog has to know them all: one that stands still does not see that the postmaster died.
  notePids(folder, family)
  for (const each of family) sendSignal(each, signal)
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
