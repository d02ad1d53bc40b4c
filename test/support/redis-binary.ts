import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { installPackage } from './apt.js'

const COMMAND_TO_RUN =
  'Install it with `apt-get install -y redis-server` (Debian, Ubuntu) or `brew install redis` ' +
  '(macOS), or name the binary in the environment variable REDIS_SERVER.'

/**
 * The path of a redis-server: `REDIS_SERVER`, else the one on PATH, else one that `apt-get` installs
 * when this process is root. Throws with the command to run where none of these finds one.
 */
export function findRedisServer(): string {
  const named = process.env['REDIS_SERVER']
  if (named) {
    if (isExecutable(named)) return named
    throw new Error(`REDIS_SERVER names ${named}, which is not an executable. ${COMMAND_TO_RUN}`)
  }
  const found = findOnPath()
  if (found) return found
  if (process.getuid?.() !== 0) throw new Error(`No redis-server on PATH. ${COMMAND_TO_RUN}`)
  install()
  const installed = findOnPath()
  if (installed) return installed
  throw new Error(`apt-get installed no redis-server that is on PATH. ${COMMAND_TO_RUN}`)
}

function findOnPath(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  return folders.map((folder) => join(folder, 'redis-server')).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function install(): void {
  try {
    installPackage('redis-server')
  } catch (cause) {
    throw new Error(`apt-get could not install redis-server. ${COMMAND_TO_RUN}`, { cause })
  }
}
