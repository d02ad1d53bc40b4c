import { randomBytes } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readdir, rename, rm, symlink } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { digestOfParts } from '../../base/digest.js'

/** A lock that lasts until `free` or the end of its process, however the process ends. */
export interface ProcessLock {
  free(): Promise<void>
}

const LOOK_AGAIN_MS = 5
/** How long the process whose ticket is first by name waits for the others to leave. */
const PATIENCE_MS = 2000
/** Maximum length of a socket's path: 103 bytes on macOS, 107 on Linux. */
const MAX_PATH_BYTES = 103
/** The name of a socket in the folder: the time, and a random number. */
const TICKET = /^[0-9a-z]{9}-[0-9a-f]{8}$/
const UNFINISHED = 'new-'
/** Length of a slash, `new-` and a ticket. */
const MAX_NAME_BYTES = 1 + UNFINISHED.length + 9 + 1 + 8

/**
 * Creates and locks a folder, against other processes of this machine and other calls of this one. Resolves
 * with `undefined` if it is locked already.
 *
 * Node has no `flock`, and a PID file outlives its process. A listening socket does not: the system closes
 * it with its process, and only then refuses connections. Each process creates a listening socket in the
 * folder and then looks for others. Of two processes, the one that looks last sees the other, so at most one
 * finds itself alone. The process whose socket is first by name waits until it is alone; the others leave. Each
 * removes sockets that no longer listen. This is safe, because names are never reused and a socket gets its name
 * only after it listens.
 */
export async function lockFolder(folder: string): Promise<ProcessLock | undefined> {
  if (process.platform === 'win32') return lockPipe(folder)
  await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  return throughShortPath(folder, (short) => lockByTicket(folder, short))
}

/** `short` is a shorter path of the folder, which exists only during this call. */
async function lockByTicket(folder: string, short: string): Promise<ProcessLock | undefined> {
  const ownName = `${Date.now().toString(36).padStart(9, '0')}-${randomBytes(4).toString('hex')}`
  const unfinished = join(short, `${UNFINISHED}${ownName}`)
  const server = await listen(unfinished)
  const ticket = join(folder, ownName)
  try {
    await chmod(unfinished, 0o600)
    await rename(unfinished, join(short, ownName))
    if (await becomesAlone(short, ownName)) return { free: () => leave(server, ticket) }
  } catch (error) {
    await leave(server, ticket)
    // Another process has the lock by now, and has removed the unfinished socket.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  await leave(server, ticket)
  return undefined
}

async function becomesAlone(folder: string, ownName: string): Promise<boolean> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const others = await livingOthers(folder, ownName)
    if (others.length === 0) break
    if (others.some((other) => other < ownName) || performance.now() > deadline) return false
    await delay(LOOK_AGAIN_MS)
  }
  const unfinished = (await readdir(folder)).filter((name) => name.startsWith(UNFINISHED))
  await Promise.all(unfinished.map((name) => rm(join(folder, name), { force: true })))
  return true
}

async function livingOthers(folder: string, ownName: string): Promise<string[]> {
  const living: string[] = []
  for (const name of await readdir(folder)) {
    if (name === ownName || !TICKET.test(name)) continue
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

/** The kernel accepts connections, so a busy or stopped process counts as listening too. */
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
    // Otherwise the primary process of a cluster would listen instead of the worker.
    server.listen({ path, exclusive: true }, () => resolve(server.on('error', () => {})))
    server.unref()
  })
}

/** Uses a temporary symbolic link if the path is too long for a socket. */
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

/** On Windows the name of a pipe belongs to one process and is free once that process has ended. */
async function lockPipe(folder: string): Promise<ProcessLock | undefined> {
  try {
    const server = await listen(`\\\\.\\pipe\\journal-${digestOfParts([folder.toLowerCase()])}`)
    return { free: () => new Promise((resolve) => void server.close(() => resolve())) }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined
    throw error
  }
}
