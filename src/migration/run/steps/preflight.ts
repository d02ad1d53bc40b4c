import { CoreError } from '../../core/core-error.js'
import { externalUserIdOf } from '../../record-validation/stored-form.js'
import type { MigrationContext } from '../migration-context.js'
import type { PreflightFinding } from '../report.js'
import type { IndexedRecord } from '../source-index.js'
import type { EntryOf } from '../state/journal-entry.js'
import { writeRecordIndexes } from '../state/record-indexes.js'
import { examineSource, readCatalogue } from './examine-source.js'
import {
  conflictEntries,
  createLoginIndex,
  findRepeatedLogins,
  type LoginLookUp,
  lookUpLogins,
} from './login-conflicts.js'

/** The result of a preflight, with its entry for the journal, unless the core cannot import at all. */
interface Preflight {
  readonly findings: readonly PreflightFinding[]
  readonly passed: boolean
  readonly entry: EntryOf<'preflight'> | undefined
}

/** Checks whether the core and the source are ready for the run. Changes nothing at the core. */
export async function preflight(ctx: MigrationContext): Promise<Preflight> {
  ctx.emit('preflight')
  const rows = await countAllRows(ctx)
  if (typeof rows !== 'number') return { findings: [rows], passed: false, entry: undefined }
  const examination = await examineSource(ctx, await readCatalogue(ctx))
  const findings = [...foreignRowFindings(ctx, rows), ...examination.findings]
  const passed = findings.every(({ severity }) => severity === 'notice')
  const foreignRows = passed && rows > 0 ? await findForeignRows(ctx) : []
  const conflicts = await findLoginConflicts(ctx, { passed, invalid: examination.invalid })
  const entry: EntryOf<'preflight'> = {
    type: 'preflight',
    started: false,
    invalid: writeRecordIndexes(examination.invalid),
    hasAccount: writeRecordIndexes(inOrder(conflicts.accounts)),
    foreignRows,
    ...conflictEntries(conflicts.taken, conflicts.twice),
  }
  return { findings: [...findings, ...conflictFindings(ctx, conflicts)], passed, entry }
}

const inOrder = (recordIndexes: Iterable<number>): number[] =>
  [...recordIndexes].sort((one, two) => one - two)

interface LoginConflicts extends LoginLookUp {
  readonly twice: ReadonlyMap<number, string>
}

/** Looks up records only if nothing stops the run, because a failed preflight is repeated. */
async function findLoginConflicts(
  ctx: MigrationContext,
  { passed, invalid }: { readonly passed: boolean; readonly invalid: readonly number[] },
): Promise<LoginConflicts> {
  const skipped = new Set(invalid)
  const lookUp = passed
    ? await lookUpLogins(ctx, recordsWithout(ctx, skipped))
    : { accounts: new Set<number>(), taken: new Map<number, string>() }
  for (const recordIndex of [...lookUp.accounts, ...lookUp.taken.keys()]) skipped.add(recordIndex)
  const twice = await findRepeatedLogins(ctx, recordsWithout(ctx, skipped), createLoginIndex())
  return { ...lookUp, twice }
}

function conflictFindings(
  ctx: MigrationContext,
  { taken, twice }: LoginConflicts,
): PreflightFinding[] {
  const finding = (
    code: PreflightFinding['code'],
    [first, ...others]: readonly number[],
    message: string,
  ): PreflightFinding[] => {
    if (first === undefined) return []
    const line = ctx.sourceIndex.lineOf(first)
    return [{ code, severity: 'notice', message, line, records: 1 + others.length }]
  }
  return [
    ...finding('login_taken', inOrder(taken.keys()), 'Another account has a login of the record.'),
    ...finding('login_twice', inOrder(twice.keys()), 'An earlier record has the same login.'),
  ]
}

/** Also detects a core that is too old, because no route returns the core's version. */
async function countAllRows({
  core,
  signal,
}: MigrationContext): Promise<number | PreflightFinding> {
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

/** Returns none once staging has begun, because the rows may be of this run. */
function foreignRowFindings(
  { settings, journaled }: MigrationContext,
  rows: number,
): PreflightFinding[] {
  if (rows === 0 || journaled.state.started) return []
  const message = `The core has ${rows} staged rows that are not of this run.`
  const severity = settings.allowForeignRows ? 'notice' : 'fault'
  return [{ code: 'foreign_rows', severity, message, records: rows }]
}

/** Returns the rows of identities of the source that existed before the run, which must not treat them as its rows. */
async function findForeignRows({ core, sourceIndex, signal }: MigrationContext): Promise<string[]> {
  const ids: string[] = []
  for await (const row of core.rows(undefined, { signal })) {
    const externalUserId = externalUserIdOf(row)
    if (externalUserId === undefined) continue
    if (sourceIndex.recordIndexOf(externalUserId) !== undefined) ids.push(row.id)
  }
  return ids
}

async function* recordsWithout(
  { sourceIndex, signal }: MigrationContext,
  skipped: ReadonlySet<number>,
): AsyncGenerator<IndexedRecord> {
  for await (const record of sourceIndex.records(0, signal)) {
    if (!skipped.has(record.recordIndex)) yield record
  }
}
