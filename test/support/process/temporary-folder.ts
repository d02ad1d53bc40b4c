import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { guardFolder } from './watchdog.js'

const watchdogs = new Map<string, () => void>()

/** Makes a temporary folder, which a watchdog removes when this process ends, and resolves with its path. */
export async function temporaryFolder(prefix: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), prefix))
  watchdogs.set(folder, guardFolder(folder))
  return folder
}

export async function removeTemporaryFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
  watchdogs.get(folder)?.()
  watchdogs.delete(folder)
}
