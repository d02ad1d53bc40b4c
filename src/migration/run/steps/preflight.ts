import { CoreError } from '../../core/core-error.js'
import { externalUserIdOf } from '../../record-validation/external-user-id.js'
import type { Work } from '../migration-context.js'
import type { PreflightFinding } from '../report.js'
import type { SurveyedRecord } from '../source-index.js'
import type { EntryOf } from '../state/journal-entry.js'
import { writeOrdinals } from '../state/record-indexes.js'
import { examineSource } from './examine-source.js'
import {
  conflictLists,
  createLoginIndex,
  findRepeatedLogins,
  type LoginLookUp,
  lookUpLogins,
} from './login-conflicts.js'
import { type Catalogue, sourceFindings } from './preflight-findings.js'

/** The result of a preflight, with its entries for the journal. */
export interface Preflight {
  readonly findings: readonly PreflightFinding[]
  readonly passed: boolean
  readonly entries: readonly EntryOf<'preflight'>[]
}

/** Checks whether the core and the source are ready for the run. Changes nothing at the core. */
export async function preflight(work: Work): Promise<Preflight> {
  work.tell('preflight')
  const rows = await countAllRows(work)
  if (typeof rows !== 'number') return failed([rows])
  const catalogue = await readCatalogue(work)
  const examination = await examineSource(work, catalogue.tenants)
  const blockers = [...foreignRows(work, rows), ...sourceFindings(examination, catalogue)]
  const passed = blockers.every(({ severity }) => severity === 'notice')
  const foreign = passed && rows > 0 ? await rowsWithOurIdentities(work) : []
  const conflicts = await findLoginConflicts(work, { passed, invalid: examination.invalid })
  const entries = conflictLists(conflicts.taken, conflicts.twice).map(
    (lists, index): EntryOf<'preflight'> => ({
      type: 'preflight',
      isFirst: index === 0,
      started: false,
      invalid: index === 0 ? writeOrdinals(examination.invalid) : '',
      hasAccount: index === 0 ? writeOrdinals(inOrder(conflicts.accounts)) : '',
      foreignRows: index === 0 ? foreign : [],
      ...lists,
    }),
  )
  return { findings: [...blockers, ...conflictFindings(work, conflicts)], passed, entries }
}

const inOrder = (ordinals: Iterable<number>): number[] =>
  [...ordinals].sort((one, two) => one - two)

interface LoginConflicts extends LoginLookUp {
  readonly twice: ReadonlyMap<number, string>
}

/** Looks up records only if nothing stops the run, because a failed preflight is repeated. */
async function findLoginConflicts(
  work: Work,
  { passed, invalid }: { readonly passed: boolean; readonly invalid: readonly number[] },
): Promise<LoginConflicts> {
  const skipped = new Set(invalid)
  const lookUp = passed
    ? await lookUpLogins(work, recordsWithout(work, skipped))
    : { accounts: new Set<number>(), taken: new Map<number, string>() }
  for (const ordinal of [...lookUp.accounts, ...lookUp.taken.keys()]) skipped.add(ordinal)
  const twice = await findRepeatedLogins(work, recordsWithout(work, skipped), createLoginIndex())
  return { ...lookUp, twice }
}

function conflictFindings(work: Work, { taken, twice }: LoginConflicts): PreflightFinding[] {
  const finding = (
    code: PreflightFinding['code'],
    [first, ...others]: readonly number[],
    message: string,
  ): PreflightFinding[] => {
    if (first === undefined) return []
    const line = work.survey.lineOf(first)
    return [{ code, severity: 'notice', message, line, records: 1 + others.length }]
  }
  return [
    ...finding('login_taken', inOrder(taken.keys()), 'Another account has a login of the record.'),
    ...finding('login_twice', inOrder(twice.keys()), 'An earlier record has the same login.'),
  ]
}

const failed = (findings: readonly PreflightFinding[]): Preflight => ({
  findings,
  passed: false,
  entries: [],
})

/** Also detects a core that is too old, because no route returns the core's version. */
async function countAllRows({ core, signal }: Work): Promise<number | PreflightFinding> {
  try {
    return await core.countRows(undefined, { signal })
  } catch (error) {
    const code = error instanceof CoreError ? error.code : undefined
    if (code === 'not_found') {
      const message =
        'The core does not know bulk import: it is older than 10.0.0, or the path of its address is wrong.'
      return { code: 'core_too_old', severity: 'fault', message }
    }
    if (code === 'in_memory_database') {
      const message = 'The core has its in-memory database, which keeps nothing.'
      return { code: 'in_memory_database', severity: 'fault', message }
    }
    throw error
  }
}

export async function readCatalogue({ core, signal }: Work): Promise<Catalogue> {
  const [tenants, roles, features] = await Promise.all([
    core.tenants({ signal }),
    core.roles({ signal }),
    core.features({ signal }),
  ])
  return { tenants, roles, features }
}

/** Once staging has begun, the rows may be those of the run. */
function foreignRows({ settings, ledger }: Work, rows: number): PreflightFinding[] {
  if (rows === 0 || ledger.state.started) return []
  const message = `The core has ${rows} staged rows that are not of this run.`
  const severity = settings.allowForeignRows ? 'notice' : 'fault'
  return [{ code: 'foreign_rows', severity, message, records: rows }]
}

/** Rows that existed before the run, of identities of the source. The run must not take them for its own. */
async function rowsWithOurIdentities({ core, survey, signal }: Work): Promise<string[]> {
  const ids: string[] = []
  for await (const row of core.rows(undefined, { signal })) {
    const externalUserId = externalUserIdOf(row)
    if (externalUserId === undefined) continue
    if (survey.ordinalOf(externalUserId) !== undefined) ids.push(row.id)
  }
  return ids
}

async function* recordsWithout(
  { survey }: Work,
  skipped: ReadonlySet<number>,
): AsyncGenerator<SurveyedRecord> {
  for await (const record of survey.records(0)) {
    if (!skipped.has(record.ordinal)) yield record
  }
}
