import { validateUser } from '../record-validation/validate-user.js'
import { type IdentityDetails, readDetails } from './identity-details.js'
import type { Ledger } from './journaled-state.js'
import type { IdentityReport } from './report.js'
import type { Survey, SurveyedRecord } from './source-index.js'
import { COUNTED_AS } from './state/identity-state.js'
import { stateOf } from './state/run-state.js'
import { findingText } from './steps/finding-text.js'

/** Identities of which details are in memory at once; the journal is read once for each so many. */
const WINDOW = 20_000

/** Each identity of the source, in its order, with what the journal tells of it. */
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
