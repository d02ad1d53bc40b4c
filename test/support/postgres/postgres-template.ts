import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, chown, mkdir, mkdtemp, readFile, rename, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { SUPERUSER } from './postgres-address.js'
import { findPostgres, type PostgresBinaries, type PostgresVersion } from './postgres-binary.js'
import { serverUser } from './postgres-user.js'

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

/** Returns a new cluster of the version. The first call of a test run makes it by initdb. */
export async function postgresTemplate(version: PostgresVersion): Promise<PostgresTemplate> {
  const found = findPostgres(version)
  const folder = join(tmpdir(), `esa-postgres-of-${found.major}`)
  if (!existsSync(folder)) await make(folder, found)
  return { bin: binIn(folder, found), data: join(folder, 'data'), major: found.major }
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
