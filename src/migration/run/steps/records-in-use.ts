import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../source-index.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { stateOf } from '../state/run-state.js'

/** States in which an identity gets no account from its current record. */
const WITHOUT_ACCOUNT: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.invalid,
  IDENTITY.failed,
  IDENTITY.missing,
  IDENTITY.left_out,
])

/** Yields the current records, of the source or of corrections, whose account exists or will exist. */
export async function* recordsInUse(
  { survey, ledger: { state } }: Work,
  without: ReadonlySet<number>,
): AsyncGenerator<SurveyedRecord> {
  for (let from = 0; from <= state.corrections.length; from++) {
    for await (const record of survey.records(from)) {
      const { ordinal } = record
      if (state.recordsFrom[ordinal] !== from || without.has(ordinal)) continue
      if (!WITHOUT_ACCOUNT.has(stateOf(state, ordinal))) yield record
    }
  }
}
