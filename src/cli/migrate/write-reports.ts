import type { Migration } from '../../migration/run/migration.js'
import type { IdentityReport, IdentityState, MigrationReport } from '../../migration/run/report.js'
import { ACCOUNTS_FILE, NEEDS_PERSON_FILE, REPORT_FILE, writeAside } from './report-files.js'

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

export const NOBODY: NeedingPerson = { count: 0, shown: [] }

const SHOWN = 20

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
  const file = await writeAside(directory, REPORT_FILE)
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
  const needing = await writeAside(directory, NEEDS_PERSON_FILE)
  const accounts = await writeAside(directory, ACCOUNTS_FILE)
  try {
    for await (const identity of migration.identities()) {
      const { externalUserId, state, coreUserId } = identity
      if (coreUserId !== undefined) {
        await accounts.append(`${JSON.stringify({ externalUserId, coreUserId, state })}\n`)
      }
      if (!NEEDS_PERSON[state]) continue
      count += 1
      if (shown.length < SHOWN) shown.push(identity)
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
