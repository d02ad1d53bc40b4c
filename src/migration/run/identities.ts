import type { JournaledState } from './replay-journal.js'
import type { IdentityReport } from './report.js'
import { type IndexedRecord, type SourceIndex, validateRecord } from './source-index.js'
import { REPORTED_STATE } from './state/identity-state.js'
import type { Entry, EntryOf, ResultOf } from './state/journal-entry.js'
import { readRecordIndexes } from './state/record-indexes.js'
import { identityCode, sizeOf } from './state/run-state.js'

/** Number of identities whose details are in memory at a time. The journal is read once per window. */
const WINDOW = 20_000

/** Yields each identity of the source, in its order, with its details from the journal. */
export async function* identityReports(
  journaled: JournaledState,
  sourceIndex: SourceIndex,
  signal: AbortSignal,
): AsyncGenerator<IdentityReport> {
  let details: ReadonlyMap<number, IdentityDetails> = new Map()
  for await (const record of sourceIndex.records(0, signal)) {
    if (record.recordIndex % WINDOW === 0) {
      details = await readDetails(journaled, record.recordIndex, record.recordIndex + WINDOW)
    }
    yield reportOn(journaled, record, details.get(record.recordIndex) ?? {})
  }
}

function reportOn(
  { state }: JournaledState,
  record: IndexedRecord,
  { wasRejected, ...details }: IdentityDetails,
): IdentityReport {
  const status = REPORTED_STATE[identityCode(state, record.recordIndex)] ?? 'pending'
  const report = { externalUserId: record.externalUserId, line: record.line, state: status }
  if (status !== 'invalid' || wasRejected === true) return { ...report, ...details }
  const validation = validateRecord(record)
  return { ...report, ...details, ...(!validation.ok && { errors: validation.errors }) }
}

type Details = Partial<Omit<IdentityReport, 'externalUserId' | 'state'>>

/** The part of an identity's report that comes from the journal, without its state. */
interface IdentityDetails extends Details {
  /** The core rejected the record. Otherwise validation of the record gives the errors. */
  readonly wasRejected?: boolean
}

/** Reads the details of the identities from `first` up to, but not including, `end` from the journal. */
async function readDetails(
  { state, entries }: JournaledState,
  first: number,
  end: number,
): Promise<ReadonlyMap<number, IdentityDetails>> {
  const details = new Map<number, IdentityDetails>()
  for await (const entry of entries()) {
    // A new preflight replaces an earlier one, which may have read another source.
    if (entry.type === 'preflight') details.clear()
    for (const [recordIndex, change] of changesIn(entry, sizeOf(state))) {
      if (recordIndex < first || recordIndex >= end) continue
      details.set(recordIndex, change(details.get(recordIndex) ?? {}))
    }
  }
  return details
}

type Change = (before: IdentityDetails) => IdentityDetails
type Changes = Generator<readonly [recordIndex: number, Change]>

/** Replaces all details but the position of the record, because earlier ones are out of date. */
const replaceBy =
  (details: IdentityDetails): Change =>
  ({ line, corrections }) => ({
    ...(line !== undefined && { line }),
    ...(corrections !== undefined && { corrections }),
    ...details,
  })

/** Yields the changes to the details in the order of the entry. */
function* changesIn(entry: Entry, identities: number): Changes {
  switch (entry.type) {
    case 'preflight':
      yield* loginConflicts(entry)
      return
    case 'settled':
      if (entry.result.outcome === 'rejected') yield* rejected(entry.result)
      return
    case 'row':
      if (entry.as !== 'failed') return
      yield [entry.record, replaceBy({ rowId: entry.row, ...pickReason(entry) })]
      return
    case 'looked_up':
      yield* lookedUp(entry)
      return
    case 'corrected':
      yield* corrected(entry)
      return
    case 'retry':
      yield* loginConflicts(entry)
      for (const index of readRecordIndexes(entry.records, identities)) {
        yield [index, replaceBy({})]
      }
  }
}

function* loginConflicts({ taken, twice }: Pick<EntryOf<'retry'>, 'taken' | 'twice'>): Changes {
  for (const [index, heldBy] of taken) {
    yield [index, replaceBy({ code: 'login_taken', heldBy })]
  }
  for (const [index, text] of twice) {
    yield [index, replaceBy({ code: 'login_twice', text })]
  }
}

function* rejected({ users }: ResultOf<'rejected'>): Changes {
  for (const { record, errors, code } of users) {
    const findings = errors.map((message) => ({ field: '', code: 'rejected', message }))
    yield [
      record,
      replaceBy({ ...(code !== undefined && { code }), errors: findings, wasRejected: true }),
    ]
  }
}

type Reason = Pick<Details, 'code' | 'text' | 'heldBy'>

const pickReason = ({
  code,
  text,
  heldBy,
}: { [name in keyof Reason]: Reason[name] | undefined }): Reason => ({
  ...(code !== undefined && { code }),
  ...(text !== undefined && { text }),
  ...(heldBy !== undefined && { heldBy }),
})

function* lookedUp({ same, differs, missing, shared, refused }: EntryOf<'looked_up'>): Changes {
  for (const [index, coreUserId] of same) yield [index, replaceBy({ coreUserId })]
  for (const [index, coreUserId, differences] of differs) {
    yield [index, replaceBy({ coreUserId, differences })]
  }
  for (const [index, heldBy] of missing) yield [index, replaceBy(heldBy === null ? {} : { heldBy })]
  for (const [index, coreUserId] of shared) {
    yield [
      index,
      ({ differences, ...before }) =>
        replaceBy({ coreUserId, ...(differences !== undefined && { differences }) })(before),
    ]
  }
  for (const { record, ...reason } of refused) yield [record, replaceBy(pickReason(reason))]
}

function* corrected({ source, replaced, leftOut, accepted }: EntryOf<'corrected'>): Changes {
  for (const [index, line] of replaced) yield [index, () => ({ line, corrections: source.name })]
  for (const [index, , reason] of [...leftOut, ...accepted]) {
    yield [index, (before) => ({ ...before, reason })]
  }
}
