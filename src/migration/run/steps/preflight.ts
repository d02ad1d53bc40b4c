import { findHolder } from '../../account/find-account.js'
import { CoreError } from '../../core/core-error.js'
import { loginKeysOf } from '../../record-validation/login-keys.js'
import { externalUserIdOf } from '../../record-validation/normalise.js'
import type { UserFinding } from '../../record-validation/user-finding.js'
import { lackedBy, validateUser } from '../../record-validation/validate-user.js'
import { createDigestTable } from '../../source/digest-table.js'
import {
  forEachConcurrently,
  type IndexedRecord,
  type MigrationContext,
  recordPosition,
  userOf,
} from '../records.js'
import type { EntryOf, PreflightFinding } from '../state/journal-entry.js'

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
    invalid: [...examination.invalid],
    hasAccount: [...examination.accounts],
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

/** What keeps records from becoming accounts of their own, by record index. */
interface Examination {
  /** Objections to records, and what the core lacks. */
  readonly findings: readonly PreflightFinding[]
  /** Records that the core would refuse. */
  readonly invalid: ReadonlySet<number>
  /** Records that have their account. */
  readonly accounts: ReadonlySet<number>
  /** Records with a login that another account has, and the core's id of that account. */
  readonly taken: ReadonlyMap<number, string>
  /** Records with a login of an earlier record, and the record index of that one. */
  readonly twice: ReadonlyMap<number, number>
}

interface ExaminedRecords {
  /** Yields the same records each time: a source may be too large to keep. */
  readonly records: () => AsyncIterable<IndexedRecord>
  /** Records that have been validated already are only looked up. */
  readonly areValid?: boolean
  /** A fault, or another reason, stops the run, so that no record is looked up: that would be repeated. */
  readonly isStopped?: boolean
  /** Other records, which keep their logins. */
  readonly others?: AsyncIterable<IndexedRecord>
}

/** Examines records of the source, or of corrections, before they are staged. Changes nothing at the core. */
export async function examine(
  ctx: MigrationContext,
  { records, areValid = false, isStopped = false, others }: ExaminedRecords,
): Promise<Examination> {
  const { invalid, findings } = areValid ? NOT_VALIDATED : await validateAll(ctx, records())
  const mayLookUp = !isStopped && findings.every(({ severity }) => severity === 'notice')
  const logins = createDigestTable()
  for await (const record of others ?? []) addLogins(logins, record)
  const skipped = new Set(invalid)
  const twice = new Map<number, number>()
  if (others !== undefined) {
    for await (const record of without(records(), skipped)) {
      const other = ownerOf(logins, record)
      if (other !== undefined) twice.set(record.recordIndex, other)
    }
  }
  for (const recordIndex of twice.keys()) skipped.add(recordIndex)
  const found = mayLookUp ? await lookUpLogins(ctx, without(records(), skipped)) : NOT_LOOKED_UP
  for (const recordIndex of [...found.accounts, ...found.taken.keys()]) skipped.add(recordIndex)
  // Only now: a login that no account can get from an earlier record is free for a later one.
  for await (const record of without(records(), skipped)) {
    const earlier = ownerOf(logins, record)
    if (earlier === undefined) addLogins(logins, record)
    else twice.set(record.recordIndex, earlier)
  }
  return { findings, invalid, ...found, twice }
}

/** Logins with the record index of the record that has each of them. */
type Logins = ReturnType<typeof createDigestTable>

function addLogins(logins: Logins, record: IndexedRecord): void {
  for (const key of loginKeysOf(userOf(record))) logins.add(key, record.recordIndex)
}

/** Returns the record that has one of the record's logins. */
function ownerOf(logins: Logins, record: IndexedRecord): number | undefined {
  for (const key of loginKeysOf(userOf(record))) {
    const owner = logins.find(key)
    if (owner !== undefined) return owner
  }
  return undefined
}

const NOT_VALIDATED = { invalid: new Set<number>(), findings: [] }
const NOT_LOOKED_UP = { accounts: new Set<number>(), taken: new Map<number, string>() }

async function* without(
  records: AsyncIterable<IndexedRecord>,
  skipped: ReadonlySet<number>,
): AsyncGenerator<IndexedRecord> {
  for await (const record of records) if (!skipped.has(record.recordIndex)) yield record
}

/** Looks up the account and the logins of each record, `lookUps` records at a time. */
async function lookUpLogins(
  { core, settings, signal }: MigrationContext,
  records: AsyncIterable<IndexedRecord>,
): Promise<Pick<Examination, 'accounts' | 'taken'>> {
  const accounts = new Set<number>()
  const taken = new Map<number, string>()
  await forEachConcurrently(records, settings.lookUps, async (record) => {
    const { recordIndex, externalUserId } = record
    const holder = await findHolder(core, { externalUserId, user: userOf(record) }, { signal })
    if (holder === 'own') accounts.add(recordIndex)
    else if (holder !== undefined) taken.set(recordIndex, holder.heldBy)
  })
  return { accounts, taken }
}

/** Validates each record, and compares what the valid ones need with what the core has. */
async function validateAll(
  { core, settings, signal }: MigrationContext,
  records: AsyncIterable<IndexedRecord>,
): Promise<Pick<Examination, 'invalid' | 'findings'>> {
  const [tenants, roles, features] = await Promise.all([
    core.tenants({ signal }),
    core.roles({ signal }),
    core.features({ signal }),
  ])
  const present = {
    tenants: new Set(tenants.map(({ tenantId }) => tenantId)),
    roles: new Set(roles),
    features: new Set(features),
  }
  const accepted = new Set<string>(settings.acceptWarnings)
  const invalid = new Set<number>()
  const tally = createTally()
  for await (const record of records) {
    const validation = validateUser(record.value)
    if (!validation.ok) {
      // Its warnings count once a correction has made it valid.
      invalid.add(record.recordIndex)
      const { errors } = validation
      const kind = errors[0]?.code ?? ''
      tally.add(record, { code: 'record_invalid', kind, message: describeFindings(errors) })
      continue
    }
    for (const { kind, name } of lackedBy(validation.user, present)) {
      const message = `The core lacks the ${kind} ${name}.`
      tally.add(record, { code: `${kind}_missing`, kind: name, message })
    }
    for (const warning of validation.warnings) {
      if (accepted.has(warning.code)) continue
      const message = describeFindings([warning])
      tally.add(record, { code: 'warning_not_accepted', kind: warning.code, message })
    }
  }
  return { invalid, findings: tally.findings() }
}

interface Finding extends Pick<PreflightFinding, 'code' | 'message'> {
  /** What is missing, or the code of the record's first fault. */
  readonly kind: string
}

/** Counts records by code and kind of finding. The first record of a kind gives the message. */
function createTally() {
  const found = new Map<string, Required<PreflightFinding> & { readonly lastLine: number }>()
  return {
    add({ line }: IndexedRecord, { code, kind, message }: Finding): void {
      const key = `${code} ${kind}`
      const severity = code === 'record_invalid' ? 'notice' : 'fault'
      const nothing = { code, severity, message, line, records: 0, lastLine: -1 } as const
      const { records, lastLine, ...first } = found.get(key) ?? nothing
      if (lastLine !== line) found.set(key, { ...first, records: records + 1, lastLine: line })
    },
    findings: (): PreflightFinding[] => [...found.values()].map(({ lastLine: _, ...each }) => each),
  }
}

/** Maximum number of findings in one message. The report of the identity has all of them. */
const MAX_TEXTS = 3

function describeFindings(findings: readonly UserFinding[]): string {
  const texts = findings
    .slice(0, MAX_TEXTS)
    .map(({ code, field, message }) => `${code} in ${field || 'the record'}: ${message}`)
  const others = findings.length - texts.length
  return [...texts, ...(others > 0 ? [`and ${others} more`] : [])].join('; ')
}
