import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'pg'
import { freePort, isExecutable, LOAD_CORE, spawnPinned } from './processes.js'

const HOW_TO_GET_IT =
  'no Postgres: install it (`apt-get install -y postgresql`), or name the folder of its programs in POSTGRES_BIN'

/** It refuses to run as root, who starts it as this user. */
const UNPRIVILEGED = 'nobody'
const DEBIAN_FOLDER = '/usr/lib/postgresql'
const START_TIMEOUT_MS = 20_000
const POLL_MS = 50

/** Every commit is flushed to the disk, as by default; checkpoints are rarer than the turns are long. */
const SETTINGS = `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = '256MB'
max_wal_size = '4GB'
checkpoint_timeout = '1h'
`

/** Starts a Postgres of the bench's own, on a disk, on a free port. */
export async function startPostgres() {
  const bin = findPrograms()
  const folder = mkdtempSync(join(tmpdir(), 'bench-postgres-'))
  const user = unprivilegedUser()
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const data = join(folder, 'data')
  const initdb = ['-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--locale=C']
  execFileSync(join(bin, 'initdb'), initdb, { cwd: folder, stdio: 'ignore', ...user })
  await appendFile(join(data, 'postgresql.conf'), SETTINGS)
  const port = await freePort()
  const args = ['-D', data, '-p', String(port)]
  const options = { cwd: folder, stdio: 'ignore', ...user }
  const child = spawnPinned(LOAD_CORE, join(bin, 'postgres'), args, options)
  const ended = once(child, 'exit')
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`
  const pool = new Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  await untilItServes(pool, child)
  return {
    url,
    port,
    pool,
    /** What its connections have needed; 0 on a system without /proc. */
    cpuMicroseconds: createCpuMeter(child.pid),
    async stop() {
      await pool.end()
      // Fast: it ends its clients first.
      child.kill('SIGINT')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Returns a function for the processor time of all connections so far, with those that have ended. */
function createCpuMeter(pid) {
  const seen = new Map()
  return () => {
    for (const child of childrenOf(pid)) seen.set(child, cpuOf(child) ?? seen.get(child) ?? 0)
    return [...seen.values()].reduce((sum, each) => sum + each, 0)
  }
}

function childrenOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  } catch {
    return []
  }
}

function cpuOf(pid) {
  try {
    const [nanoseconds] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')
    return Number(nanoseconds) / 1000
  } catch {
    // It has ended.
    return undefined
  }
}

async function untilItServes(pool, child) {
  const giveUpAt = performance.now() + START_TIMEOUT_MS
  for (;;) {
    const error = await pool.query('select 1').then(
      () => undefined,
      (reason) => reason,
    )
    if (error === undefined) return
    if (child.exitCode !== null || performance.now() > giveUpAt) throw error
    await sleep(POLL_MS)
  }
}

function findPrograms() {
  const folders = [process.env.POSTGRES_BIN ?? [], process.env.PATH?.split(delimiter) ?? []].flat()
  const found = [...folders, ...foldersOfDebian()].find((folder) => isExecutable(folder, 'initdb'))
  if (found === undefined) throw new Error(HOW_TO_GET_IT)
  return found
}

function foldersOfDebian() {
  try {
    const versions = readdirSync(DEBIAN_FOLDER).sort((one, other) => Number(other) - Number(one))
    return versions.map((version) => join(DEBIAN_FOLDER, version, 'bin'))
  } catch {
    return []
  }
}

function unprivilegedUser() {
  if (process.getuid?.() !== 0) return undefined
  const idOf = (option) => Number(execFileSync('id', [option, UNPRIVILEGED], { encoding: 'utf8' }))
  return { uid: idOf('-u'), gid: idOf('-g') }
}
