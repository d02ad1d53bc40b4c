import { forEachAtOnce } from '../at-once.js'
import type { SurveyedRecord } from '../survey.js'
import type { Work } from '../work.js'

/** Who of them has an account. */
export async function findAccounts(
  { core, settings, signal }: Pick<Work, 'core' | 'settings' | 'signal'>,
  records: Iterable<SurveyedRecord> | AsyncIterable<SurveyedRecord>,
): Promise<ReadonlySet<number>> {
  const found = new Set<number>()
  await forEachAtOnce(records, settings.lookUps, async ({ ordinal, externalUserId }) => {
    const coreUserId = await core.coreIdOf(externalUserId, { signal })
    if (coreUserId !== undefined) found.add(ordinal)
  })
  return found
}
