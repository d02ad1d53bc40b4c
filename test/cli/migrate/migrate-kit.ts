import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import type { MigrationReport } from '../../../src/migration/run/report.js'
import type { StandInCore } from '../../support/core/stand-in-core.js'
import { knowSecret } from '../../support/secret-search/index.js'
import { type Ran, runHere, temporaryFolder } from '../kit.js'

const HASH = '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy'

export const userNamed = (externalUserId: string): ImportUser => ({
  externalUserId,
  loginMethods: [
    {
      recipeId: 'emailpassword',
      email: `${externalUserId}@x.example`,
      passwordHash: HASH,
      hashingAlgorithm: 'bcrypt',
    },
  ],
})

export const linesOf = (...values: readonly unknown[]): string =>
  values.map((value) => `${JSON.stringify(value)}\n`).join('')

/** A source, and the folder of a journal, of one test. */
export interface Project {
  readonly folder: string
  readonly journal: string
  readonly source: string
  /** The command line of a step on it. */
  argv(step: string, ...more: readonly string[]): string[]
  /** Runs a step on it. */
  migrate(step: string, ...more: readonly string[]): Promise<Ran>
  at(coreUrl: string): Project
}

export async function projectOf(
  core: Pick<StandInCore, 'url'>,
  source: string | Buffer,
  apiKey: string,
): Promise<Project> {
  knowSecret('an API key', apiKey)
  const folder = await temporaryFolder()
  const path = join(folder, 'users.ndjson')
  await writeFile(path, source)
  const journal = join(folder, 'journal')
  const at = (coreUrl: string): Project => {
    const argv: Project['argv'] = (step, ...more) => {
      const asked = ['--core', coreUrl, '--api-key-stdin', '--source', path]
      const where = step === 'status' || step === 'clean' ? [] : asked
      return ['migrate', step, ...where, '--journal', journal, '--poll-seconds', '1', ...more]
    }
    return {
      folder,
      journal,
      source: path,
      at,
      argv,
      migrate: (step, ...more) => runHere(argv(step, ...more), { stdin: apiKey }),
    }
  }
  return at(core.url)
}

/** How much sooner than by the clock a run of `runUntilStalled` has waited long enough. */
const HURRY = 1000

/** Runs a migration into a core whose job does not move, as if half an hour passed in two seconds. */
export async function runUntilStalled(
  { url: baseUrl, apiKey }: Pick<StandInCore, 'url' | 'apiKey'>,
  { source, journal: directory }: Pick<Project, 'source' | 'journal'>,
): Promise<MigrationReport> {
  const journal = await fileJournal(directory)
  const migration = await openMigrationWith(
    { core: coreClient({ baseUrl, apiKey }), source: { file: source }, journal },
    {
      now: Date.now,
      elapsedMs: () => performance.now() * HURRY,
      sleep: (ms, signal) => sleep(ms / HURRY, undefined, { signal }),
    },
  )
  try {
    return await migration.run()
  } finally {
    await migration.close()
  }
}
