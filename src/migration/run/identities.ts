import { findingText } from '../account/without-account-data.js'
import { validateUser } from '../record-validation/validate-user.js'
import type { Ledger } from './journaled-state.js'
import type { SurveyedRecord } from './read-source.js'
import type { IdentityReport } from './report.js'
import type { Survey } from './source-index.js'
import { COUNTED_AS } from './state/identity-state.js'
import type { Entry, EntryOf, ResultOf } from './state/journal-entry.js'
import { readOrdinals } from './state/record-indexes.js'
import { sizeOf, stateOf } from './state/run-state.js'

/** Number of identities whose details are in memory at a time. The journal is read once per window. */
const WINDOW = 20_000

/** Yields each identity of the source, in its order, with its details from the journal. */
export async function* identityReports(
  ledger: Ledger,
  survey: Survey,
): AsyncGenerator<IdentityReport> {
  let details: ReadonlyMap<number, IdentityDetails> = new Map()
  for await (const record of survey.records(0)) {
    if (record.ordinal % WINDOW === 0) {
      details = await readDetails(ledger, record.ordinal, record.ordinal + WINDOW)
    }
    yield reportOn(ledger, record, details.get(record.ordinal) ?? {})
  }
}

function reportOn(
  { state }: Ledger,
  record: SurveyedRecord,
  { wasRejected, ...details }: IdentityDetails,
): IdentityReport {
  const standing = COUNTED_AS[stateOf(state, record.ordinal)] ?? 'pending'
  const report = { externalUserId: record.externalUserId, line: record.line, state: standing }
  if (standing !== 'invalid' || wasRejected === true) return { ...report, ...details }
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
  ledger: Ledger,
  first: number,
  end: number,
): Promise<ReadonlyMap<number, IdentityDetails>> {
  const details = new Map<number, IdentityDetails>()
  const sheet: Sheet = {
    of: (ordinal) => details.get(ordinal) ?? {},
    set(ordinal, its) {
      if (ordinal >= first && ordinal < end) details.set(ordinal, its)
    },
    clear: () => details.clear(),
  }
  for await (const entry of ledger.entries()) apply(entry, sheet, ledger)
  return details
}

/** The details from the entries that have been read. */
interface Sheet {
  of(ordinal: number): IdentityDetails
  set(ordinal: number, its: IdentityDetails): void
  clear(): void
}

function apply(entry: Entry, sheet: Sheet, { state }: Ledger): void {
  switch (entry.type) {
    case 'preflight':
      // A new preflight replaces an earlier one, which may have read another source.
      if (entry.isFirst) sheet.clear()
      loginConflicts(entry, sheet)
      return
    case 'settled':
      if (entry.result.outcome === 'rejected') rejected(entry.result, sheet)
      return
    case 'row':
      if (entry.as === 'failed') set(entry.record, sheet, { rowId: entry.row, ...reasonOf(entry) })
      return
    case 'looked_up':
      lookedUp(entry, sheet)
      return
    case 'corrected':
      corrected(entry, sheet)
      return
    case 'retry':
      loginConflicts(entry, sheet)
      for (const of of readOrdinals(entry.records, sizeOf(state))) set(of, sheet, {})
  }
}

/** Replaces all details but the position of the record, because earlier ones are out of date. */
function set(ordinal: number, sheet: Sheet, details: IdentityDetails): void {
  const { line, corrections } = sheet.of(ordinal)
  sheet.set(ordinal, {
    ...(line !== undefined && { line }),
    ...(corrections !== undefined && { corrections }),
    ...details,
  })
}

function loginConflicts(
  { taken, twice }: Pick<EntryOf<'retry'>, 'taken' | 'twice'>,
  sheet: Sheet,
): void {
  for (const [of, heldBy] of taken) set(of, sheet, { code: 'login_taken', heldBy })
  for (const [of, text] of twice) set(of, sheet, { code: 'login_twice', text })
}

function rejected({ users }: ResultOf<'rejected'>, sheet: Sheet): void {
  for (const { record, errors } of users) {
    const findings = errors.map((message) => ({ field: '', code: 'rejected', message }))
    set(record, sheet, { errors: findings, wasRejected: true })
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

function lookedUp(entry: EntryOf<'looked_up'>, sheet: Sheet): void {
  for (const [of, coreUserId] of entry.same) set(of, sheet, { coreUserId })
  for (const [of, coreUserId, differences] of entry.differs) {
    set(of, sheet, { coreUserId, differences })
  }
  for (const [of, heldBy] of entry.missing) set(of, sheet, heldBy === null ? {} : { heldBy })
  for (const [of, coreUserId] of entry.shared) {
    const { differences } = sheet.of(of)
    set(of, sheet, { coreUserId, ...(differences !== undefined && { differences }) })
  }
  for (const { record, ...reason } of entry.refused) set(record, sheet, reasonOf(reason))
}

function corrected(entry: EntryOf<'corrected'>, sheet: Sheet): void {
  for (const [of, line] of entry.replaced) {
    sheet.set(of, { line, corrections: entry.source.name })
  }
  for (const [of, , reason] of [...entry.leftOut, ...entry.accepted]) {
    sheet.set(of, { ...sheet.of(of), reason })
  }
}
