import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readFile, rename, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { SUPERUSER } from './postgres-address.js'
import { findPostgres, type PostgresBinaries, type PostgresVersion } from './postgres-binary.js'
import { serverUser } from './postgres-user.js'

/** What the global setup has found, for the workers. */
export interface PostgresFound {
  /** The folder of the templates; a worker that needs one that is not there makes it, also for the others. */
  readonly home: string
  readonly binaries: Readonly<Record<PostgresVersion, PostgresBinaries>>
}

export interface PostgresTemplate {
  /** The `bin` folder, which the user of the servers can read. */
  readonly bin: string
  /** A new cluster, which each server copies. */
  readonly data: string
  readonly major: number
}

const INITDB_OPTIONS = [
  '--no-sync',
  '--no-instructions',
  '--auth=trust',
  `--username=${SUPERUSER}`,
  '--encoding=UTF8',
  '--locale=C',
  // In megabytes; small, because each server copies the cluster.
  '--wal-segsize=1',
]

const run = promisify(execFile)

/** Finds or installs both versions, and makes the folder for their templates, but no template yet. */
export function preparePostgres(): PostgresFound {
  const binaries = { 15: findPostgres(15), 18: findPostgres(18) }
  const home = mkdtempSync(join(tmpdir(), 'esa-postgres-home-'))
  // The user of the servers must be able to enter it.
  chmodSync(home, 0o711)
  return { home, binaries }
}

/** Returns a new cluster of the version. The first call makes it by initdb. */
export async function postgresTemplate(version: PostgresVersion): Promise<PostgresTemplate> {
  const { home, binaries } = postgresFound()
  const found = binaries[version]
  const folder = join(home, String(found.major))
  if (!existsSync(folder)) await make(folder, found)
  return { bin: binIn(folder, found), data: join(folder, 'data'), major: found.major }
}

let foundHere: PostgresFound | undefined

function postgresFound(): PostgresFound {
  // Programs without Vitest, such as the soak, have no global setup.
  if (process.env['VITEST'] === undefined) {
    foundHere ??= preparePostgres()
    return foundHere
  }
  const found = inject('postgres')
  if ('fault' in found) throw new Error(found.fault)
  return found
}

/** Several workers may make it at once, and the first one wins. */
async function make(folder: string, found: PostgresBinaries): Promise<void> {
  const unfinished = await mkdtemp(`${folder}.`)
  // The user of the servers must be able to enter it.
  await chmod(unfinished, 0o711)
  if (found.missingLinks !== undefined) await copyPrograms(unfinished, found.missingLinks)
  const data = join(unfinished, 'data')
  await mkdir(data, { mode: 0o700 })
  const user = serverUser()
  if (user) await chown(data, user.uid, user.gid)
  const initdb = join(binIn(unfinished, found), 'initdb')
  await run(initdb, [...INITDB_OPTIONS, data], { cwd: data, ...user })
  await rename(unfinished, folder).catch((error: unknown) => {
    if (!existsSync(folder)) throw error
  })
}

function binIn(folder: string, { folder: original, missingLinks }: PostgresBinaries): string {
  return missingLinks === undefined ? original : join(folder, 'native', 'bin')
}

/** Copies the programs, because the user of the servers may have no access to the project's folder. */
async function copyPrograms(folder: string, missingLinks: string): Promise<void> {
  await run('cp', ['-a', dirname(missingLinks), join(folder, 'native')])
  await run('chmod', ['-R', 'a+rX', join(folder, 'native')])
  for (const { source, target } of await readLinks(missingLinks)) {
    const path = join(folder, target)
    if (!existsSync(path)) await symlink(relative(dirname(target), source), path)
  }
}

async function readLinks(file: string): Promise<{ source: string; target: string }[]> {
  if (!existsSync(file)) return []
  return JSON.parse(await readFile(file, 'utf8'))
}
