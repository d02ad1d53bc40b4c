import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import {
  type IdentityCore,
  startIdentityCore,
} from '../../../example-app/identity-core/identity-core.js'
import type { CoreVersion } from '../../../example-app/identity-core/interface-version.js'
import { openDatabase } from '../../../example-app/identity-core/users/database.js'
import { lockFolder } from '../../../example-app/identity-core/users/folder-lock.js'
import { SCHEMA } from '../../../example-app/identity-core/users/schema.js'
import type { UsersOptions } from '../../../example-app/identity-core/users/users.js'
import { removeTemporaryFolder, temporaryFolder } from '../../../example-app/temporary-folder.js'
import { CACHE } from '../process/cache.js'

const CORE_API_KEY = 'the-key-of-the-stand-in-core'

export interface StandInCore extends IdentityCore {
  readonly apiKey: string
  /** Where its users are: another core may open it once this one is closed. */
  readonly folder: string
  /** Closes the core and deletes what it kept. */
  close(): Promise<void>
}

export interface StandInCoreOptions extends Partial<UsersOptions> {
  /** 11.4 by default. */
  readonly version?: CoreVersion
  readonly port?: number
  readonly clock?: () => number
}

/** A stand-in core with a database of its own. Its job runs only when it is told to. */
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
  // A thousand files: the program takes a quarter of the processor time that `fs.cp` takes.
  await promisify(execFile)('cp', ['-R', await template(), folder])
  return folder
}

export async function removeDatabaseFolder(folder: string): Promise<void> {
  await removeTemporaryFolder(dirname(folder))
}

/** Runs the job again and again until no row changes any more. */
export async function runJobToEnd(core: Pick<IdentityCore, 'query' | 'runJob'>): Promise<void> {
  const statuses = async () => JSON.stringify(await core.query(STATUSES))
  let before = ''
  for (let now = await statuses(); now !== before; now = await statuses()) {
    before = now
    await core.runJob()
  }
}

const STATUSES = "select id, status = 'FAILED' as failed from bulk_import_users order by position"

/** What a migration must have come to: the core's id of each external id, asked of the tables. */
export async function accountsByExternalId(
  core: Pick<IdentityCore, 'query'>,
): Promise<ReadonlyMap<string, string>> {
  const rows = await core.query<{ external_id: string; account_id: string }>(
    'select external_id, account_id from userid_mapping join login_methods on id = core_id',
  )
  return new Map(rows.map((row) => [row.external_id, row.account_id]))
}

const MANIFEST = new URL('../../../package.json', import.meta.url)
const LOOK_AGAIN_MS = 100

/**
 * A database takes seconds to set up and is copied in a moment: the first test that needs one makes
 * it, and it stays from one run to the next while the tables are the same.
 */
async function template(): Promise<string> {
  const manifest = JSON.parse(await readFile(MANIFEST, 'utf8'))
  const version = manifest.devDependencies['@electric-sql/pglite']
  const tables = createHash('sha256').update(SCHEMA).digest('hex').slice(0, 16)
  const folder = join(CACHE, `pglite-${version}-${tables}`)
  await mkdir(CACHE, { recursive: true })
  while (!existsSync(folder)) {
    const lock = await lockFolder(`${folder}.template`)
    if (lock === undefined) await delay(LOOK_AGAIN_MS)
    else await makeTemplate(folder).finally(() => lock.close())
  }
  return folder
}

async function makeTemplate(folder: string): Promise<void> {
  if (existsSync(folder)) return
  const unopened = `${folder}.made`
  await rm(unopened, { recursive: true, force: true })
  await (await openDatabase(unopened)).close()
  await rename(unopened, folder)
}
