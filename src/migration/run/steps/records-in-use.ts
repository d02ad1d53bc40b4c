import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { stateOf } from '../state/run-state.js'
import type { SurveyedRecord } from '../survey.js'
import type { Work } from '../work.js'

/** None of these gets an account with the record that is there. */
const WITHOUT_ACCOUNT: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.invalid,
  IDENTITY.failed,
  IDENTITY.missing,
  IDENTITY.left_out,
])

/** Records, of the source and of corrections, that have an account or are to get one. */
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
