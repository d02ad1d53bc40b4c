import { rmSync } from 'node:fs'
import { mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A socket in the folder, which its process listens on for as long as it lives. */
const OWNER = 'owner'

/**
 * Makes a temporary folder, which is removed when this process ends by itself; resolves with its path.
 * It first removes those of the same prefix whose process was killed.
 *
 * The number of a process says nothing in another PID namespace. A connection to a listening socket is
 * refused only once its process is gone, whatever its namespace, so only that makes a folder nobody's.
 * A folder that this user may not look into counts as used.
 */
export async function temporaryFolder(prefix: string): Promise<string> {
  await removeAbandoned(prefix)
  const folder = await mkdtemp(join(tmpdir(), prefix))
  // It appears under its name when it listens already, so that nobody takes the folder for abandoned.
  const unfinished = join(folder, 'new')
  const server = await listen(unfinished)
  await rename(unfinished, join(folder, OWNER))
  const remove = () => rmSync(folder, { recursive: true, force: true })
  process.once('exit', remove)
  server.once('close', () => process.off('exit', remove))
  servers.set(folder, server)
  return folder
}

const servers = new Map<string, Server>()

export async function removeTemporaryFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  servers.get(folder)?.close()
  servers.delete(folder)
}

async function removeAbandoned(prefix: string): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(prefix))
  for (const name of names) {
    const folder = join(tmpdir(), name)
    // Another process may be removing it at the same time.
    if (await isAbandoned(folder))
      await rm(folder, { recursive: true, force: true }).catch(() => {})
  }
}

async function isAbandoned(folder: string): Promise<boolean> {
  const owner = await stat(join(folder, OWNER)).catch(() => undefined)
  if (!owner?.isSocket() || owner.uid !== process.getuid?.()) return false
  return new Promise((resolve) => {
    const socket = connect(join(folder, OWNER), () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}

function listen(path: string): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => void socket.on('error', () => {}).destroy())
    server.once('error', reject)
    server.listen({ path, exclusive: true }, () => resolve(server.on('error', () => {})))
    server.unref()
  })
}
