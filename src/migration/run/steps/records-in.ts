import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../source-index.js'
import type { IdentityCode } from '../state/identity-state.js'
import { stateOf } from '../state/run-state.js'

/** Yields records in one of these states. `from` is 0 for the source, n for the n-th corrections. */
export async function* recordsIn(
  { ledger: { state }, survey }: Pick<Work, 'ledger' | 'survey'>,
  from: number,
  codes: ReadonlySet<IdentityCode>,
): AsyncGenerator<SurveyedRecord> {
  const isWanted = (ordinal: number): boolean =>
    state.recordsFrom[ordinal] === from && codes.has(stateOf(state, ordinal))
  if (!state.identities.some((_, ordinal) => isWanted(ordinal))) return
  for await (const record of survey.records(from)) if (isWanted(record.ordinal)) yield record
}
