import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { installPackage } from './apt.js'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

const COMMAND_TO_RUN =
  'Install it with `apt-get install -y chromium` (Debian), or name the binary of a Chromium or ' +
  'Chrome in the environment variable CHROMIUM.'

/**
 * The path of a Chromium: `CHROMIUM`, else the one on PATH, else one that `apt-get` installs when
 * this process is root. Throws with the command to run where none of these finds one.
 */
export function findChromium(): string {
  const named = process.env['CHROMIUM']
  if (named) {
    if (isExecutable(named)) return named
    throw new Error(`CHROMIUM names ${named}, which is not an executable. ${COMMAND_TO_RUN}`)
  }
  const found = findOnPath()
  if (found) return found
  if (process.getuid?.() !== 0) throw new Error(`No Chromium on PATH. ${COMMAND_TO_RUN}`)
  try {
    installPackage('chromium')
  } catch (cause) {
    throw new Error(`apt-get could not install chromium. ${COMMAND_TO_RUN}`, { cause })
  }
  const installed = findOnPath()
  if (installed) return installed
  throw new Error(`apt-get installed no Chromium that is on PATH. ${COMMAND_TO_RUN}`)
}

function findOnPath(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
