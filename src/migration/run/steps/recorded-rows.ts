import type { Entry } from '../state/entry.js'
import type { SurveyedRecord } from '../survey.js'
import type { Work } from '../work.js'

/** The failed rows of an identity that turns out to have its account: twins, to be deleted. */
export function recordedRowsOf(
  { ledger }: Work,
  { ordinal, line, externalUserId }: SurveyedRecord,
): Entry[] {
  const entries: Entry[] = []
  for (const [row, of] of ledger.state.rows) {
    if (of === ordinal) entries.push({ type: 'row', row, of, line, externalUserId, as: 'twin' })
  }
  return entries
}
