import { reconcileUser } from '../../account/reconcile-user.js'
import type { ImportUser } from '../../core/import-user.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../source-index.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { stateOf } from '../state/run-state.js'
import { ownRowOf } from './identity-of-row.js'
import { type AccountsSeen, accountsSeen } from './known-accounts.js'
import { type LookUps, lookUps } from './look-ups.js'
import { recordsIn } from './records-in.js'

/** Identities written down at once. */
const CHUNK = 200

/** Looks each identity up that has not been since it came to rest, and whether no row is left. */
export async function reconcile(work: Work): Promise<void> {
  const { corrections } = work.ledger.state
  const seen = await accountsSeen(work)
  for (let from = 0; from <= corrections.length; from++) await reconcileFrom(work, from, seen)
  if (await hasUnrecordedRow(work)) return work.ledger.write({ type: 'rows_appeared' })
  await work.ledger.write({ type: 'reconciled' })
}

async function reconcileFrom(work: Work, from: number, seen: AccountsSeen): Promise<void> {
  let results = lookUps()
  const flush = async (): Promise<void> => {
    const written = results
    results = lookUps()
    if (written.size === 0) return
    await work.ledger.write(written.entry())
    work.tell('reconciling', { users: written.size })
  }
  await forEachAtOnce(dueRecords(work, from), work.settings.lookUps, async (record) => {
    await lookUp(work, { record, seen, results: () => results })
    if (results.size >= CHUNK) await flush()
  })
  await flush()
}

/** Those who failed or are held back: the hook may have made the account since. */
const WITHOUT_ACCOUNT: ReadonlySet<IdentityCode> = new Set([IDENTITY.failed, IDENTITY.invalid])

const DUE: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.staged,
  IDENTITY.found,
  ...WITHOUT_ACCOUNT,
])

/** Leaves out identities whose rows still wait at the core after a stall, and invalid records. */
async function* dueRecords(work: Work, from: number): AsyncGenerator<SurveyedRecord> {
  const { state } = work.ledger
  const waiting = new Set([...state.stalledRows.values()].map(({ of }) => of))
  for await (const record of recordsIn(work, from, DUE)) {
    const { ordinal } = record
    // A record without a code is not one that the core takes.
    const isRefused =
      stateOf(state, ordinal) === IDENTITY.invalid && state.failureCodes[ordinal] === 0
    if (!waiting.has(ordinal) && !isRefused) yield record
  }
}

interface LookUp {
  readonly record: SurveyedRecord
  readonly seen: AccountsSeen
  readonly results: () => LookUps
}

async function lookUp(work: Work, { record, seen, results }: LookUp): Promise<void> {
  const { ordinal, externalUserId } = record
  if (WITHOUT_ACCOUNT.has(stateOf(work.ledger.state, ordinal))) {
    const coreUserId = await work.core.coreIdOf(externalUserId, { signal: work.signal })
    if (coreUserId === undefined) return
  }
  const user = record.value as unknown as ImportUser
  const { signal } = work
  const found = await reconcileUser(work.core, { externalUserId, user }, { signal })
  if (found.state === 'missing') return results().missing(ordinal, found.heldBy)
  const { coreUserId, accountId, differences } = found
  const sharers = seen.add(ordinal, { externalUserId, coreUserId, accountId })
  if (sharers.length > 0) return results().shared([...sharers, ordinal], coreUserId)
  if (differences.length > 0) return results().differs(ordinal, coreUserId, differences)
  results().same(ordinal, coreUserId)
}

/** A call without reply may have landed while the others were looked up. */
async function hasUnrecordedRow(work: Work): Promise<boolean> {
  const { stalledRows } = work.ledger.state
  for await (const row of work.core.rows(undefined, { signal: work.signal })) {
    if (!stalledRows.has(row.id) && ownRowOf(work, row) !== undefined) return true
  }
  return false
}
