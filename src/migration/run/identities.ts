import { findingText } from '../account/without-account-data.js'
import { validateUser } from '../record-validation/validate-user.js'
import type { JournaledState } from './journaled-state.js'
import type { IdentityReport } from './report.js'
import type { IndexedRecord, SourceIndex } from './source-index.js'
import { REPORTED_STATE } from './state/identity-state.js'
import type { Entry, EntryOf, ResultOf } from './state/journal-entry.js'
import { readRecordIndexes } from './state/record-indexes.js'
import { sizeOf, stateOf } from './state/run-state.js'

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
  const status = REPORTED_STATE[stateOf(state, record.recordIndex)] ?? 'pending'
  const report = { externalUserId: record.externalUserId, line: record.line, state: status }
  if (status !== 'invalid' || wasRejected === true) return { ...report, ...details }
  const validation = validateUser(record.value)
  if (validation.ok) return { ...report, ...details }
  const errors = validation.errors.map((error) => ({
    ...error,
    message: findingText(error, record.value),
  }))
  return { ...report, ...details, errors }
}

type Details = Partial<Omit<IdentityReport, 'externalUserId' | 'state'>>

/** The part of an identity's report that comes from the journal, without its state. */
interface IdentityDetails extends Details {
  /** The core rejected the record. Otherwise validation of the record gives the errors. */
  readonly wasRejected?: boolean
}

/** Reads the details of the identities from `first` up to, but not including, `end` from the journal. */
async function readDetails(
  journaled: JournaledState,
  first: number,
  end: number,
): Promise<ReadonlyMap<number, IdentityDetails>> {
  const details = new Map<number, IdentityDetails>()
  const detailsByRecord: DetailsByRecord = {
    of: (recordIndex) => details.get(recordIndex) ?? {},
    set(recordIndex, its) {
      if (recordIndex >= first && recordIndex < end) details.set(recordIndex, its)
    },
    clear: () => details.clear(),
  }
  for await (const entry of journaled.entries()) apply(entry, detailsByRecord, journaled)
  return details
}

/** The details from the entries that have been read. */
interface DetailsByRecord {
  of(recordIndex: number): IdentityDetails
  set(recordIndex: number, its: IdentityDetails): void
  clear(): void
}

function apply(entry: Entry, detailsByRecord: DetailsByRecord, { state }: JournaledState): void {
  switch (entry.type) {
    case 'preflight':
      // A new preflight replaces an earlier one, which may have read another source.
      if (entry.isFirst) detailsByRecord.clear()
      loginConflicts(entry, detailsByRecord)
      return
    case 'settled':
      if (entry.result.outcome === 'rejected') rejected(entry.result, detailsByRecord)
      return
    case 'row':
      if (entry.as === 'failed')
        set(entry.record, detailsByRecord, { rowId: entry.row, ...reasonOf(entry) })
      return
    case 'looked_up':
      lookedUp(entry, detailsByRecord)
      return
    case 'corrected':
      corrected(entry, detailsByRecord)
      return
    case 'retry':
      loginConflicts(entry, detailsByRecord)
      for (const of of readRecordIndexes(entry.records, sizeOf(state))) set(of, detailsByRecord, {})
  }
}

/** Replaces all details but the position of the record, because earlier ones are out of date. */
function set(
  recordIndex: number,
  detailsByRecord: DetailsByRecord,
  details: IdentityDetails,
): void {
  const { line, corrections } = detailsByRecord.of(recordIndex)
  detailsByRecord.set(recordIndex, {
    ...(line !== undefined && { line }),
    ...(corrections !== undefined && { corrections }),
    ...details,
  })
}

function loginConflicts(
  { taken, twice }: Pick<EntryOf<'retry'>, 'taken' | 'twice'>,
  detailsByRecord: DetailsByRecord,
): void {
  for (const [of, heldBy] of taken) set(of, detailsByRecord, { code: 'login_taken', heldBy })
  for (const [of, text] of twice) set(of, detailsByRecord, { code: 'login_twice', text })
}

function rejected({ users }: ResultOf<'rejected'>, detailsByRecord: DetailsByRecord): void {
  for (const { record, errors } of users) {
    const findings = errors.map((message) => ({ field: '', code: 'rejected', message }))
    set(record, detailsByRecord, { errors: findings, wasRejected: true })
  }
}

type Reason = Pick<Details, 'code' | 'text' | 'heldBy'>

const reasonOf = ({
  code,
  text,
  heldBy,
}: { [name in keyof Reason]: Reason[name] | undefined }): Reason => ({
  ...(code !== undefined && { code }),
  ...(text !== undefined && { text }),
  ...(heldBy !== undefined && { heldBy }),
})

function lookedUp(entry: EntryOf<'looked_up'>, detailsByRecord: DetailsByRecord): void {
  for (const [of, coreUserId] of entry.same) set(of, detailsByRecord, { coreUserId })
  for (const [of, coreUserId, differences] of entry.differs) {
    set(of, detailsByRecord, { coreUserId, differences })
  }
  for (const [of, heldBy] of entry.missing)
    set(of, detailsByRecord, heldBy === null ? {} : { heldBy })
  for (const [of, coreUserId] of entry.shared) {
    const { differences } = detailsByRecord.of(of)
    set(of, detailsByRecord, { coreUserId, ...(differences !== undefined && { differences }) })
  }
  for (const { record, ...reason } of entry.refused) set(record, detailsByRecord, reasonOf(reason))
}

function corrected(entry: EntryOf<'corrected'>, detailsByRecord: DetailsByRecord): void {
  for (const [of, line] of entry.replaced) {
    detailsByRecord.set(of, { line, corrections: entry.source.name })
  }
  for (const [of, , reason] of [...entry.leftOut, ...entry.accepted]) {
    detailsByRecord.set(of, { ...detailsByRecord.of(of), reason })
  }
}
