import { constants } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../../migration/journal/file-journal.js'
import type { Migration } from '../../migration/run/migration.js'
import type { IdentityReport, IdentityState, MigrationReport } from '../../migration/run/report.js'
import { usageError } from '../frame/command-failure.js'

const NEEDS_PERSON: Readonly<Record<IdentityState, boolean>> = {
  invalid: true,
  pending: false,
  staged: false,
  failed: true,
  missing: true,
  differs: true,
  shared: true,
  reconciled: false,
  accepted: false,
  left_out: false,
}

/** The identities that need a person. */
export interface NeedingPerson {
  readonly count: number
  /** The first 20. */
  readonly shown: readonly IdentityReport[]
}

export const NO_ACTION_NEEDED: NeedingPerson = { count: 0, shown: [] }

const MAX_SHOWN = 20

/**
 * Rewrites `report.json`, `report.ndjson` (each identity that needs a person) and `accounts.ndjson`
 * (each known account).
 *
 * @throws CommandFailure (2)
 */
export async function writeReports(
  directory: string,
  report: MigrationReport,
  migration: Pick<Migration, 'identities'>,
): Promise<NeedingPerson> {
  const needing = await writeIdentities(directory, migration)
  const file = await openReplacement(directory, REPORT_FILE)
  await file.append(`${JSON.stringify(report, null, 2)}\n`)
  await file.finish()
  return needing
}

async function writeIdentities(
  directory: string,
  migration: Pick<Migration, 'identities'>,
): Promise<NeedingPerson> {
  const shown: IdentityReport[] = []
  let count = 0
  const needing = await openReplacement(directory, NEEDS_PERSON_FILE)
  const accounts = await openReplacement(directory, ACCOUNTS_FILE)
  try {
    for await (const identity of migration.identities()) {
      const { externalUserId, state, coreUserId } = identity
      if (coreUserId !== undefined) {
        await accounts.append(`${JSON.stringify({ externalUserId, coreUserId, state })}\n`)
      }
      if (!NEEDS_PERSON[state]) continue
      count += 1
      if (shown.length < MAX_SHOWN) shown.push(identity)
      await needing.append(`${JSON.stringify(identity)}\n`)
    }
  } catch (error) {
    await Promise.all([needing.abandon(), accounts.abandon()])
    throw error
  }
  await needing.finish()
  await accounts.finish()
  return { count, shown }
}

/** In the folder of the journal. */
export const REPORT_FILE = 'report.json'
export const NEEDS_PERSON_FILE = 'report.ndjson'
export const ACCOUNTS_FILE = 'accounts.ndjson'

const OWNER_ONLY_MODE = 0o600

/** The number of characters that are buffered before a write. */
const MAX_BUFFERED = 64 * 1024

/**
 * Creates a file that only its owner can read in the journal's folder. `finish` gives it `name`, so that no
 * partial file ever has that name.
 *
 * @throws CommandFailure (2); the functions of the returned object reject with it, too.
 */
async function openReplacement(directory: string, name: string) {
  const path = join(directory, name)
  const partPath = `${path}.part`
  const orFailure = <T>(work: () => Promise<T>): Promise<T> =>
    work().catch((error) => cannotWrite(name, error))
  // Overwrites the partial file of a killed process, which is of no use.
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW = 0 } = constants
  const file = await orFailure(() =>
    open(partPath, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, OWNER_ONLY_MODE),
  )
  let buffered = ''
  const flush = async (): Promise<void> => {
    const text = buffered
    buffered = ''
    await orFailure(() => file.writeFile(text))
  }
  return {
    async append(text: string): Promise<void> {
      buffered += text
      if (buffered.length >= MAX_BUFFERED) await flush()
    },
    /** Syncs the file and replaces the previous file of this name. */
    async finish(): Promise<void> {
      await flush()
      await orFailure(async () => {
        await file.sync()
        await file.close()
        await rename(partPath, path)
        await syncFolder(directory)
      })
    },
    /** Leaves the previous file of this name unchanged. */
    abandon: (): Promise<void> => file.close(),
  }
}

function cannotWrite(name: string, error: unknown): never {
  const code = (error as NodeJS.ErrnoException).code
  throw usageError(
    'file',
    `${name} cannot be written${code ? ` (${code})` : ''}; the journal contains all ` +
      'completed work, and `status` writes the file again',
  )
}
