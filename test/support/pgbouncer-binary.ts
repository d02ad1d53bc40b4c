import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { installPackage } from './apt.js'

const COMMAND_TO_RUN =
  'Install it with `apt-get install -y pgbouncer` (Debian, Ubuntu) or `brew install pgbouncer` ' +
  '(macOS), or name the binary in the environment variable PGBOUNCER_BIN.'

/** Debian puts it there, which is on the PATH of root alone. */
const DEBIAN_FOLDER = '/usr/sbin'

/**
 * The path of a pgbouncer: `PGBOUNCER_BIN`, else the one on PATH or in Debian's folder, else one that
 * `apt-get` installs when this process is root. Throws with the command to run where none of these
 * finds one.
 */
export function findPgbouncer(): string {
  const named = process.env['PGBOUNCER_BIN']
  if (named) {
    if (isExecutable(named)) return named
    throw new Error(`PGBOUNCER_BIN names ${named}, which is not an executable. ${COMMAND_TO_RUN}`)
  }
  const found = findOnMachine()
  if (found) return found
  if (process.getuid?.() !== 0) throw new Error(`No pgbouncer on PATH. ${COMMAND_TO_RUN}`)
  try {
    installPackage('pgbouncer')
  } catch (cause) {
    throw new Error(`apt-get could not install pgbouncer. ${COMMAND_TO_RUN}`, { cause })
  }
  const installed = findOnMachine()
  if (installed) return installed
  throw new Error(`apt-get installed no pgbouncer that could be found. ${COMMAND_TO_RUN}`)
}

function findOnMachine(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  return [...folders, DEBIAN_FOLDER].map((folder) => join(folder, 'pgbouncer')).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
