import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'

export interface FolderLock {
  close(): Promise<void>
}

/**
 * Locks a folder for this process; `undefined` if another process has it. The lock is a name on
 * which one socket can listen: the system frees it when the process ends in any way. The folder's
 * parent must exist, the folder need not.
 */
export async function lockFolder(folder: string): Promise<FolderLock | undefined> {
  const address = addressOf(folder)
  const server = (await listen(address)) ?? (await listenInsteadOfTheDead(address))
  if (server === undefined) return undefined
  return { close: () => new Promise((resolve) => server.close(() => resolve())) }
}

function addressOf(folder: string): string {
  const path = join(realpathSync(dirname(folder)), basename(folder))
  const name = `identity-core-${createHash('sha256').update(path).digest('hex').slice(0, 32)}`
  if (process.platform === 'linux') return `\0${name}`
  if (process.platform === 'win32') return `\\\\.\\pipe\\${name}`
  return join(tmpdir(), `${name}.sock`)
}

/**
 * On other systems the name is a file, which a killed process leaves. Two processes that start at
 * exactly the same time after that could both take the folder.
 */
async function listenInsteadOfTheDead(address: string): Promise<Server | undefined> {
  if (process.platform === 'linux' || process.platform === 'win32') return undefined
  if (await isAnswered(address)) return undefined
  await unlink(address).catch(() => undefined)
  return listen(address)
}

function listen(address: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy())
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined)
      else reject(error)
    })
    server.listen(address, () => resolve(server.unref()))
  })
}

function isAnswered(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address, () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
