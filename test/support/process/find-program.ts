import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { installPackage, unpackProgram } from './apt.js'

export interface Program {
  /** The environment variable that may name the binary. */
  readonly variable: string
  /** The names that the binary may have. */
  readonly names: readonly [string, ...string[]]
  /** The Debian package of the program. */
  readonly package: string
  /** Folders to search after those on PATH. */
  readonly otherFolders?: readonly string[]
  /** Whether it runs from wherever its package is unpacked. */
  readonly isPortable?: boolean
  /** Tells the user how to get the program. */
  readonly remedy: string
}

/**
 * Returns the path of a program: the one that its environment variable names, else the one on PATH, else the one that
 * `apt-get` installs (if this process is root) or that is unpacked from its package (if it is portable).
 * @throws Error with the remedy if there is none.
 */
export function findProgram(program: Program): string {
  const { variable, package: name, remedy } = program
  const named = process.env[variable]
  if (named) {
    if (isExecutable(named)) return named
    throw new Error(`${variable} names ${named}, which is not an executable. ${remedy}`)
  }
  const found = findOnMachine(program)
  if (found) return found
  const isRoot = process.getuid?.() === 0
  if (!isRoot && !program.isPortable) throw new Error(`No ${name} on PATH. ${remedy}`)
  try {
    if (!isRoot) return unpackProgram(name, program.names[0])
    installPackage(name)
  } catch (cause) {
    throw new Error(`apt-get could not install ${name}. ${remedy}`, { cause })
  }
  const installed = findOnMachine(program)
  if (installed) return installed
  throw new Error(`apt-get installed no ${name} that could be found. ${remedy}`)
}

export const foldersOfPath = (): string[] =>
  (process.env['PATH'] ?? '').split(delimiter).filter(Boolean)

export function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function findOnMachine({ names, otherFolders = [] }: Program): string | undefined {
  const folders = [...foldersOfPath(), ...otherFolders]
  return names.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable)
}
