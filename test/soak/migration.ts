import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  accountsByExternalId,
  databaseFolder,
  startStandInCore,
} from '../support/core/stand-in-core.js'
import { freePort } from '../support/network/free-port.js'
import useTemporaryHome from '../support/run/temporary-home.js'

// node --import tsx test/soak/migration.ts [USERS]: the command brings so many users into the stand-in core, each a
// process of its own, and the tables are counted in the end.

const USERS = Number(process.argv[2] ?? 100_000)
const API_KEY = 'the-key-of-the-core-in-the-soak'
const HASH = '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy'

const pathOf = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

async function writeSource(file: string): Promise<void> {
  const stream = createWriteStream(file, { mode: 0o600 })
  for (let index = 0; index < USERS; index += 1) {
    const externalUserId = `soak-${index}`
    const email = `${externalUserId}@users.example`
    const method = {
      recipeId: 'emailpassword',
      email,
      passwordHash: HASH,
      hashingAlgorithm: 'bcrypt',
    }
    const user = { externalUserId, userMetadata: { index }, loginMethods: [method] }
    if (!stream.write(`${JSON.stringify(user)}\n`)) await once(stream, 'drain')
  }
  stream.end()
  await once(stream, 'close')
}

async function startCore(database: string): Promise<{ child: ChildProcess; url: string }> {
  const port = await freePort()
  const env = {
    ...process.env,
    IDENTITY_CORE_PORT: String(port),
    ISSUER_PORT: '0',
    IDENTITY_CORE_API_KEY: API_KEY,
    IDENTITY_CORE_DATABASE: database,
    BULK_IMPORT_INTERVAL_MS: '1000',
  }
  const program = ['--import', 'tsx', pathOf('test/support/core/identity-core/main.ts')]
  const child = spawn(process.execPath, program, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return { child, url: `http://127.0.0.1:${port}` }
}

async function migrate(folder: string, coreUrl: string): Promise<number> {
  await writeFile(join(folder, 'core.key'), API_KEY, { mode: 0o600 })
  const program = [
    '--import',
    import.meta.resolve('tsx'),
    pathOf('src/cli/main.ts'),
    'migrate',
    'run',
  ]
  const where = ['--core', coreUrl, '--api-key-file', 'core.key', '--source', 'users.ndjson']
  const rest = ['--journal', 'journal', '--poll-seconds', '1']
  const child = spawn(process.execPath, [...program, ...where, ...rest], {
    cwd: folder,
    stdio: 'inherit',
  })
  const [code] = await once(child, 'close')
  return code
}

await useTemporaryHome()
const folder = await mkdtemp(join(tmpdir(), 'soak-migration-'))
const database = await databaseFolder()
const core = await startCore(database)
try {
  await writeSource(join(folder, 'users.ndjson'))
  const startedAt = performance.now()
  const exitCode = await migrate(folder, core.url)
  const seconds = (performance.now() - startedAt) / 1000
  core.child.kill()
  await once(core.child, 'exit')
  const tables = await startStandInCore({ database })
  const accounts = await accountsByExternalId(tables)
  await tables.close()
  const rate = Math.round(USERS / seconds)
  console.log(`exit code ${exitCode}; ${accounts.size} accounts of ${USERS} users`)
  console.log(`${Math.round(seconds)} s, ${rate} users/s`)
  process.exitCode = exitCode === 0 && accounts.size === USERS ? 0 : 1
} finally {
  core.child.kill('SIGKILL')
  await Promise.all([folder, database].map((path) => rm(path, { recursive: true, force: true })))
}
