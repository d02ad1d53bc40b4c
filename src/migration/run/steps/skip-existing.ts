import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../source-index.js'
import { IDENTITY } from '../state/identity-state.js'
import { writeOrdinals } from '../state/record-indexes.js'
import { stateOf } from '../state/run-state.js'
import { ownRowOf } from './identity-of-row.js'
import type { Batch } from './make-batches.js'

/**
 * A batch without those who are at the core already. Looks for whoever is sent anew or was in a call
 * without reply: the hook may have made the account since, or the call may have landed.
 */
export async function withoutKnown(work: Work, batch: Batch): Promise<Batch> {
  const { state } = work.ledger
  const doubtful = batch.filter(
    ({ ordinal }) => stateOf(state, ordinal) === IDENTITY.again || state.lostOnce[ordinal] === 1,
  )
  if (doubtful.length === 0) return batch
  const rows = await identitiesWithRow(work, doubtful)
  await writeFound(work, 'row', rows)
  const accounts = await findAccounts(
    work,
    doubtful.filter(({ ordinal }) => !rows.has(ordinal)),
  )
  await writeFound(work, 'account', accounts)
  return batch.filter(({ ordinal }) => !rows.has(ordinal) && !accounts.has(ordinal))
}

async function identitiesWithRow(
  work: Work,
  records: readonly SurveyedRecord[],
): Promise<ReadonlySet<number>> {
  const asked = new Set(records.map(({ ordinal }) => ordinal))
  const found = new Set<number>()
  for await (const row of work.core.rows(undefined, { signal: work.signal })) {
    const ordinal = ownRowOf(work, row)
    if (ordinal !== undefined && asked.has(ordinal)) found.add(ordinal)
  }
  return found
}

async function writeFound(
  { ledger }: Work,
  by: 'account' | 'row',
  ordinals: ReadonlySet<number>,
): Promise<void> {
  if (ordinals.size === 0) return
  await ledger.write({ type: 'found', by, of: writeOrdinals(ordinals) })
}

async function findAccounts(
  { core, settings, signal }: Work,
  records: readonly SurveyedRecord[],
): Promise<ReadonlySet<number>> {
  const found = new Set<number>()
  await forEachAtOnce(records, settings.lookUps, async ({ ordinal, externalUserId }) => {
    const coreUserId = await core.coreIdOf(externalUserId, { signal })
    if (coreUserId !== undefined) found.add(ordinal)
  })
  return found
}
