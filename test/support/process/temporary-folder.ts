import { rmSync } from 'node:fs'
import { mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A socket in the folder, on which its process listens for its whole life. */
const OWNER = 'owner'

/**
 * Makes a temporary folder and resolves with its path. The folder is removed when this process ends
 * by itself. First removes the folders of the same prefix whose process was killed.
 *
 * A process id means nothing in another PID namespace. A connection to a listening socket is
 * refused only once its process is gone, in any namespace, so only that marks a folder as
 * abandoned. A folder that this user may not read counts as used.
 */
export async function temporaryFolder(prefix: string): Promise<string> {
  await removeAbandoned(prefix)
  const folder = await mkdtemp(join(tmpdir(), prefix))
  // The socket gets its name only once it listens, so that no other process takes the folder for abandoned.
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
