import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { CACHE } from '../process/cache.js'
import { removeTemporaryFolder, temporaryFolder } from '../process/temporary-folder.js'
import { type IdentityCore, startIdentityCore } from './identity-core/identity-core.js'
import type { CoreVersion } from './identity-core/interface-version.js'
import { openDatabase } from './identity-core/users/database.js'
import { lockFolder } from './identity-core/users/folder-lock.js'
import { SCHEMA } from './identity-core/users/schema.js'
import type { UsersOptions } from './identity-core/users/users.js'

const CORE_API_KEY = 'the-key-of-the-stand-in-core'

export interface StandInCore extends IdentityCore {
  readonly apiKey: string
  /** The folder of its database, which another core may open once this one is closed. */
  readonly folder: string
  /** Closes the core, and deletes the database unless the test gave it. */
  close(): Promise<void>
}

export interface StandInCoreOptions extends Partial<UsersOptions> {
  /** 11.4 by default. */
  readonly version?: CoreVersion
  readonly port?: number
  readonly clock?: () => number
}

/** Starts a stand-in core, by default with a new database. Its import job runs only when a test calls `runJob`. */
export async function startStandInCore(options: StandInCoreOptions = {}): Promise<StandInCore> {
  const { version = '11.4', port = 0, clock = Date.now, ...others } = options
  const { job = { intervalMs: 'off' }, ...rest } = others
  const database = options.database ?? (await databaseFolder())
  const users = { ...rest, database, job }
  const core = await startIdentityCore({ apiKey: CORE_API_KEY, version, port, clock, users })
  return {
    ...core,
    apiKey: CORE_API_KEY,
    folder: database,
    async close() {
      await core.close()
      if (options.database === undefined) await removeDatabaseFolder(database)
    },
  }
}

/** A folder with a fresh database, for a core to open; the caller removes it. */
export async function databaseFolder(): Promise<string> {
  const home = await temporaryFolder('esa-core-')
  const folder = join(home, 'database')
  // For a thousand files, the program takes a quarter of the processor time of `fs.cp`.
  await promisify(execFile)('cp', ['-R', await template(), folder])
  return folder
}

export async function removeDatabaseFolder(folder: string): Promise<void> {
  await removeTemporaryFolder(dirname(folder))
}

/** Runs the import job until a run of it changes no row. */
export async function runJobToEnd(core: Pick<IdentityCore, 'query' | 'runJob'>): Promise<void> {
  const statuses = async () => JSON.stringify(await core.query(STATUSES))
  let before = ''
  for (let now = await statuses(); now !== before; now = await statuses()) {
    before = now
    await core.runJob()
  }
}

const STATUSES = "select id, status = 'FAILED' as failed from bulk_import_users order by position"

/** Reads from the core's tables the core's id of each external id, which tests compare with a migration. */
export async function accountsByExternalId(
  core: Pick<IdentityCore, 'query'>,
): Promise<ReadonlyMap<string, string>> {
  const rows = await core.query<{ external_id: string; account_id: string }>(
    'select external_id, account_id from userid_mapping join login_methods on id = core_id',
  )
  return new Map(rows.map((row) => [row.external_id, row.account_id]))
}

const MANIFEST = new URL('../../../package.json', import.meta.url)
const LOCK_POLL_MS = 100

/**
 * Returns a database to copy, because to set one up takes seconds. The first test that needs it makes it, and
 * later test runs use it again until the schema or the version of PGlite changes.
 */
async function template(): Promise<string> {
  const manifest = JSON.parse(await readFile(MANIFEST, 'utf8'))
  const version = manifest.devDependencies['@electric-sql/pglite']
  const tables = createHash('sha256').update(SCHEMA).digest('hex').slice(0, 16)
  const folder = join(CACHE, `pglite-${version}-${tables}`)
  await mkdir(CACHE, { recursive: true })
  while (!existsSync(folder)) {
    const lock = await lockFolder(`${folder}.template`)
    if (lock === undefined) await delay(LOCK_POLL_MS)
    else await makeTemplate(folder).finally(() => lock.close())
  }
  return folder
}

async function makeTemplate(folder: string): Promise<void> {
  if (existsSync(folder)) return
  const unfinished = `${folder}.made`
  await rm(unfinished, { recursive: true, force: true })
  await (await openDatabase(unfinished)).close()
  await rename(unfinished, folder)
}
