import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { digestOfParts } from '../../base/digest.js'

/** A lock that lasts until `free` or the end of its process, however the process ends. */
export interface ProcessLock {
  free(): Promise<void>
}

/** Maximum length of a socket's path: 103 bytes on macOS, 107 on Linux. */
const MAX_PATH_BYTES = 103
/** The name of a socket in the folder. */
const TICKET = /^[0-9a-f]{16}$/
/** Length of a slash and 16 digits. */
const MAX_NAME_BYTES = 17

/**
 * Creates and locks a folder, against other processes of this machine and other calls of this one. Resolves
 * with `undefined` if it is locked already, or if another call tries at the same moment.
 *
 * Node has no `flock`, and a PID file outlives its process. A listening socket does not: the system closes
 * it with its process, and only then refuses connections. Each process creates a listening socket in the
 * folder, then looks for others, and leaves if it finds one. Of two processes, the one that looks last sees
 * the other, so at most one finds itself alone. Each removes sockets that do not listen, whose names are never
 * reused, and one whose socket was removed is not alone.
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
  const ownName = randomBytes(8).toString('hex')
  const server = await listen(join(short, ownName))
  async function free(): Promise<void> {
    await rm(join(folder, ownName), { force: true })
    await new Promise((resolve) => server.close(resolve))
  }
  const isLocked = await isAlone(short, ownName).catch(async (error: unknown) => {
    await free()
    throw error
  })
  if (isLocked) return { free }
  await free()
  return undefined
}

async function isAlone(folder: string, ownName: string): Promise<boolean> {
  let others = 0
  for (const name of await readdir(folder)) {
    if (name === ownName || !TICKET.test(name)) continue
    const path = join(folder, name)
    if (await listens(path)) others += 1
    else await rm(path, { force: true })
  }
  // Another process removes this socket if it looks before the socket listens, and may have left since.
  return others === 0 && (await readdir(folder)).includes(ownName)
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
