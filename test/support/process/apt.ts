import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CACHE } from './cache.js'

/** apt waits this long for another apt or dpkg that holds the lock. */
const LOCK_TIMEOUT_SECONDS = 120

/** Debian's packages ask this program whether they may start their services; 101 means no. */
const POLICY = '/usr/sbin/policy-rc.d'
const START_NOTHING = '#!/bin/sh\nexit 101\n'

/** Installs a Debian package, as root, without starting its service. */
export function installPackage(name: string): void {
  process.stderr.write(`Found no ${name}: installing it with apt-get.\n`)
  const isPolicyMissing = !existsSync(POLICY)
  if (isPolicyMissing) writeFileSync(POLICY, START_NOTHING, { mode: 0o755 })
  try {
    runApt('update')
    runApt('install', '-y', '--no-install-recommends', name)
  } finally {
    if (isPolicyMissing) rmSync(POLICY)
  }
}

function runApt(...args: string[]): void {
  execFileSync('apt-get', ['-q', '-o', `DPkg::Lock::Timeout=${LOCK_TIMEOUT_SECONDS}`, ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 2, 2],
  })
}

/**
 * Unpacks a Debian package, with the libraries that the machine lacks: any user may.
 * @returns the path of a script that starts the program of this name
 */
export function unpackProgram(
  name: string,
  program: string,
  folder: string = join(CACHE, 'unpacked', name),
): string {
  const start = join(folder, program)
  if (existsSync(start)) return start
  process.stderr.write(`Found no ${name}: unpacking it with apt-get and dpkg-deb.\n`)
  const archives = join(folder, 'archives')
  for (const each of ['archives', 'lists']) {
    mkdirSync(join(folder, each, 'partial'), { recursive: true })
  }
  const settings = [
    `Dir::State::Lists=${join(folder, 'lists')}`,
    `Dir::Cache=${folder}`,
    `Dir::Cache::Archives=${archives}`,
    'Debug::NoLocking=1',
  ].flatMap((setting) => ['-o', setting])
  runApt(...settings, 'update')
  runApt(...settings, 'install', '-y', '--no-install-recommends', '--download-only', name)
  const root = join(folder, 'root')
  for (const file of readdirSync(archives).filter((each) => each.endsWith('.deb'))) {
    execFileSync('dpkg-deb', ['-x', join(archives, file), root], { stdio: ['ignore', 2, 2] })
  }
  const libraries = foldersIn(join(root, 'usr/lib'), join(root, 'lib')).join(':')
  const binary = ['usr/bin', 'usr/sbin'].map((each) => join(root, each, program)).find(existsSync)
  if (binary === undefined) throw new Error(`The package ${name} has no program ${program}.`)
  const script = `#!/bin/sh\nLD_LIBRARY_PATH='${libraries}' exec '${binary}' "$@"\n`
  writeFileSync(start, script, { mode: 0o755 })
  return start
}

const foldersIn = (...parents: readonly string[]): string[] =>
  parents.filter(existsSync).flatMap((parent) =>
    readdirSync(parent, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(parent, name)),
  )
