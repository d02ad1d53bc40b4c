import { CoreError } from '../../core/core-error.js'
import { externalUserIdOf } from '../../record-validation/stored-form.js'
import type { MigrationContext } from '../migration-context.js'
import type { PreflightFinding } from '../report.js'
import type { EntryOf } from '../state/journal-entry.js'
import { writeRecordIndexes } from '../state/record-indexes.js'
import { type Examination, examine } from './examine.js'
import { recordPosition } from './records.js'

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
  const foreign = foreignRowFindings(ctx, rows)
  const examination = await examine(ctx, {
    records: () => ctx.sourceIndex.records(0, ctx.signal),
    isStopped: foreign.some(isFault),
  })
  const findings = [...foreign, ...examination.findings]
  const passed = !findings.some(isFault)
  const entry: EntryOf<'preflight'> = {
    type: 'preflight',
    started: false,
    invalid: writeRecordIndexes(examination.invalid),
    hasAccount: writeRecordIndexes(inOrder(examination.accounts)),
    foreignRows: passed && rows > 0 ? await findForeignRows(ctx) : [],
    ...conflictEntries(ctx, examination),
  }
  return { findings: [...findings, ...conflictFindings(ctx, examination)], passed, entry }
}

const isFault = ({ severity }: PreflightFinding): boolean => severity === 'fault'

const inOrder = (recordIndexes: Iterable<number>): number[] =>
  [...recordIndexes].sort((one, other) => one - other)

/** Returns the conflicts in the form of the journal. */
export const conflictEntries = (
  ctx: MigrationContext,
  { taken, twice }: Pick<Examination, 'taken' | 'twice'>,
): Pick<EntryOf<'retry'>, 'taken' | 'twice'> => ({
  taken: [...taken].sort(([one], [other]) => one - other),
  twice: [...twice].map(([recordIndex, earlier]) => [
    recordIndex,
    `${recordPosition(ctx, earlier)} has the same login.`,
  ]),
})

function conflictFindings(
  { sourceIndex }: MigrationContext,
  { taken, twice }: Examination,
): PreflightFinding[] {
  const conflicts = [
    ['login_taken', taken, 'Another account has a login of the record.'],
    ['login_twice', twice, 'An earlier record has the same login.'],
  ] as const
  return conflicts.flatMap(([code, found, message]) => {
    const [first] = inOrder(found.keys())
    if (first === undefined) return []
    const line = sourceIndex.lineOf(first)
    return [{ code, severity: 'notice', message, line, records: found.size }]
  })
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
