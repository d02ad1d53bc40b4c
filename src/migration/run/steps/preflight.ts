import { CoreError } from '../../core/core-error.js'
import type { CoreTenant } from '../../core/reply.js'
import { externalUserIdOf } from '../../record-validation/external-user-id.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../read-source.js'
import type { PreflightFinding } from '../report.js'
import type { EntryOf } from '../state/journal-entry.js'
import { writeOrdinals } from '../state/record-indexes.js'
import {
  examineSource,
  type FindingTally,
  type SourceExamination,
  type SourceNeeds,
} from './examine-source.js'
import {
  conflictLists,
  createLoginIndex,
  findRepeatedLogins,
  type LoginLookUp,
  lookUpLogins,
} from './login-conflicts.js'

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
  if (typeof rows !== 'number') return { findings: [rows], passed: false, entries: [] }
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

/** The tenants, roles and features of the core. */
interface Catalogue {
  readonly tenants: readonly CoreTenant[]
  readonly roles: readonly string[]
  readonly features: readonly string[]
}

function sourceFindings(
  { errors, warnings, needs }: SourceExamination,
  catalogue: Catalogue,
): PreflightFinding[] {
  return [
    ...missingNames(needs, catalogue),
    ...missingProviders(needs),
    ...ofRecords(warnings, 'warning_not_accepted', 'fault'),
    ...ofRecords(errors, 'record_invalid', 'notice'),
  ]
}

function missingNames(needs: SourceNeeds, catalogue: Catalogue): PreflightFinding[] {
  const tenants = new Set(['public', ...catalogue.tenants.map(({ tenantId }) => tenantId)])
  const roles = new Set(catalogue.roles)
  const features = new Set(catalogue.features)
  if (features.has('mfa')) features.add('account_linking')
  return [
    ...missing('tenant_missing', needs.tenants, tenants, (name) => `the tenant ${name}`),
    ...missing('role_missing', needs.roles, roles, (name) => `the role ${name}`),
    ...missing('feature_missing', needs.features, features, (name) => `the feature ${name}`),
  ]
}

function missing(
  code: PreflightFinding['code'],
  needed: SourceNeeds['roles'],
  present: ReadonlySet<string>,
  nameOf: (name: string) => string,
): PreflightFinding[] {
  return [...needed].flatMap(([name, about]): PreflightFinding[] => {
    if (present.has(name)) return []
    return [{ code, severity: 'fault', message: `The core lacks ${nameOf(name)}.`, ...about }]
  })
}

/** Only a notice, because the backend's own configuration may contain the provider. */
const missingProviders = ({ missingProviders: missing }: SourceNeeds): PreflightFinding[] =>
  [...missing].map(([provider, { tenants, ...about }]) => ({
    code: 'provider_missing',
    severity: 'notice',
    message: `The core lacks the provider ${provider} in ${tenantsInWords([...tenants])}; the backend may configure it.`,
    ...about,
  }))

/** Maximum number of tenants in one message. */
const MAX_TENANTS = 5

function tenantsInWords(tenants: readonly string[]): string {
  const named = tenants.slice(0, MAX_TENANTS).join(', ')
  if (tenants.length === 1) return `the tenant ${named}`
  const others = tenants.length - MAX_TENANTS
  return `the tenants ${named}${others > 0 ? ` and ${others} more` : ''}`
}

function ofRecords(
  tally: FindingTally,
  code: PreflightFinding['code'],
  severity: PreflightFinding['severity'],
): PreflightFinding[] {
  return tally.all().map((tallied) => ({ code, severity, ...tallied }))
}
