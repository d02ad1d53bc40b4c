import { randomBytes } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { digestOfParts } from '../../base/digest.js'

/** Lasts until it is freed, or until its process is gone, however that ended. */
export interface ProcessLock {
  free(): Promise<void>
}

const LOOK_AGAIN_MS = 5
/** How long the first in line waits for the others to leave. */
const PATIENCE_MS = 2000
/** Of a socket's path; macOS takes 103 bytes, Linux 107. */
const MAX_PATH_BYTES = 103
const TICKET = /^[0-9a-z]{9}-[0-9a-f]{8}$/
const UNFINISHED = 'new-'
const MAX_NAME_BYTES = 1 + UNFINISHED.length + 9 + 1 + 8

/**
 * Locks a folder, which it makes, against all other processes of this machine and against this one;
 * resolves with `undefined` when it is locked already.
 *
 * Node has no `flock`, and the number of a process in a file outlives the process. A listening socket
 * does not: the system stops it with its process, and only then is a connection to it refused. Each
 * process puts a listening socket of its own into the folder and then looks for others. Of two, the one
 * that looks last sees the other, so that at most one is ever alone. The first by name stays until it is
 * alone, and the others leave. Sockets that listen no more are removed, which is safe because no name
 * is used twice and each appears when it listens already.
 */
export async function lockFolder(folder: string): Promise<ProcessLock | undefined> {
  if (process.platform === 'win32') return lockPipe(folder)
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  return throughShortPath(folder, (short) => lockByTicket(folder, short))
}

/** `short` leads to the folder as well, for as long as this runs. */
async function lockByTicket(folder: string, short: string): Promise<ProcessLock | undefined> {
  const own = `${Date.now().toString(36).padStart(9, '0')}-${randomBytes(4).toString('hex')}`
  const unfinished = join(short, `${UNFINISHED}${own}`)
  const server = await listen(unfinished)
  const ticket = join(folder, own)
  try {
    await chmod(unfinished, 0o600)
    await rename(unfinished, join(short, own))
    if (await becomesAlone(short, own)) return { free: () => leave(server, ticket) }
  } catch (error) {
    await leave(server, ticket)
    // Whoever has the lock by now clears up what is unfinished.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  await leave(server, ticket)
  return undefined
}

async function becomesAlone(folder: string, own: string): Promise<boolean> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const others = await livingOthers(folder, own)
    if (others.length === 0) break
    if (others.some((other) => other < own) || performance.now() > deadline) return false
    await delay(LOOK_AGAIN_MS)
  }
  const left = (await readdir(folder)).filter((name) => name.startsWith(UNFINISHED))
  await Promise.all(left.map((name) => rm(join(folder, name), { force: true })))
  return true
}

async function livingOthers(folder: string, own: string): Promise<string[]> {
  const living: string[] = []
  for (const name of await readdir(folder)) {
    if (name === own || !TICKET.test(name)) continue
    const path = join(folder, name)
    if (await listens(path)) living.push(name)
    else await rm(path, { force: true })
  }
  return living
}

async function leave(server: Server, ticket: string): Promise<void> {
  await rm(ticket, { force: true })
  await new Promise((resolve) => server.close(resolve))
}

/** The system connects without the other process's doing, so one that is busy or stopped listens too. */
function listens(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT')
    })
  })
}

function listen(path: string): Promise<Server> {
  const server = createServer((socket) => void socket.on('error', () => {}).destroy())
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // Otherwise a worker of a cluster would let its parent listen.
    server.listen({ path, exclusive: true }, () => resolve(server.on('error', () => {})))
    server.unref()
  })
}

/** What a socket's path cannot hold goes through a link, which nobody needs afterwards. */
async function throughShortPath<Result>(
  folder: string,
  use: (short: string) => Promise<Result>,
): Promise<Result> {
  if (Buffer.byteLength(folder) + MAX_NAME_BYTES <= MAX_PATH_BYTES) return use(folder)
  const home = await mkdtemp(join(tmpdir(), 'journal-'))
  try {
    const link = join(home, 'l')
    await symlink(folder, link)
    return await use(link)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
}

/** On Windows a pipe's name belongs to one process and is free when that is gone. */
async function lockPipe(folder: string): Promise<ProcessLock | undefined> {
  try {
    const server = await listen(`\\\\.\\pipe\\journal-${digestOfParts([folder.toLowerCase()])}`)
    return { free: () => new Promise((resolve) => void server.close(() => resolve())) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined
    throw error
  }
}
