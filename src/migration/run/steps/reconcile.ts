import { reconcileUser } from '../../account/reconcile-user.js'
import type { ImportUser } from '../../core/import-user.js'
import { createIdentityIndex } from '../../source/identity-index.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../source-index.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import type { Entry, EntryOf } from '../state/journal-entry.js'
import { type RunState, stateOf } from '../state/run-state.js'
import { ownRowOf } from './identity-of-row.js'
import { recordsIn } from './records-in.js'

/** Number of identities that are journaled together. */
const CHUNK = 200

/** Looks up each identity that is due, then checks that the core has no unrecorded row of this run. */
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

/** Identities that failed or are held back. The hook may have created their account since. */
const MAY_HAVE_ACCOUNT_SINCE: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.failed,
  IDENTITY.invalid,
])

const DUE: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.staged,
  IDENTITY.found,
  ...MAY_HAVE_ACCOUNT_SINCE,
])

/** Skips identities whose rows still wait at the core after a stall, and invalid records. */
async function* dueRecords(work: Work, from: number): AsyncGenerator<SurveyedRecord> {
  const { state } = work.ledger
  const waiting = new Set([...state.stalledRows.values()].map(({ of }) => of))
  for await (const record of recordsIn(work, from, DUE)) {
    const { ordinal } = record
    // An invalid record without a code failed validation, so the core would not accept it.
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
  if (MAY_HAVE_ACCOUNT_SINCE.has(stateOf(work.ledger.state, ordinal))) {
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

/** A call without a reply may have taken effect during the look-ups. */
async function hasUnrecordedRow(work: Work): Promise<boolean> {
  const { stalledRows } = work.ledger.state
  for await (const row of work.core.rows(undefined, { signal: work.signal })) {
    if (!stalledRows.has(row.id) && ownRowOf(work, row) !== undefined) return true
  }
  return false
}

/** Results of look-ups, until they are journaled together. */
interface LookUps {
  readonly size: number
  same(ordinal: number, coreUserId: string): void
  differs(ordinal: number, coreUserId: string, differences: readonly string[]): void
  /** Adds identities that share one account. */
  shared(ordinals: readonly number[], coreUserId: string): void
  missing(ordinal: number, heldBy: string | undefined): void
  entry(): Entry
}

function lookUps(): LookUps {
  const results: EntryOf<'looked_up'> = {
    type: 'looked_up',
    same: [],
    differs: [],
    shared: [],
    missing: [],
  }
  let size = 0
  return {
    get size() {
      return size
    },
    same(ordinal, coreUserId) {
      size += 1
      results.same.push([ordinal, coreUserId])
    },
    differs(ordinal, coreUserId, differences) {
      size += 1
      results.differs.push([ordinal, coreUserId, [...differences]])
    },
    shared(ordinals, coreUserId) {
      size += 1
      for (const ordinal of ordinals) results.shared.push([ordinal, coreUserId])
    },
    missing(ordinal, heldBy) {
      size += 1
      results.missing.push([ordinal, heldBy ?? null])
    },
    entry: () => results,
  }
}

interface Account {
  readonly externalUserId: string
  readonly coreUserId: string
  /** The `id` that the core returns for the account: the external id of its primary user. */
  readonly accountId: string
}

/** Finds accounts that several identities share. */
interface AccountsSeen {
  /** Returns the ordinals of the other identities with this account. */
  add(ordinal: number, account: Account): readonly number[]
}

const WITHOUT_ACCOUNT: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.pending,
  IDENTITY.again,
  IDENTITY.to_import,
  IDENTITY.invalid,
  IDENTITY.accepted,
  IDENTITY.left_out,
])

/** Excludes identities that a person decided on and those that were not staged. */
const hasAccount = (state: RunState, ordinal: number): boolean =>
  !WITHOUT_ACCOUNT.has(stateOf(state, ordinal))

/** Starts with the accounts that earlier processes journaled since the last `reconcile` was requested. */
async function accountsSeen({ ledger, survey }: Work): Promise<AccountsSeen> {
  let byCoreId = createIdentityIndex()
  for await (const entry of ledger.entries()) {
    if (entry.type === 'reconcile_asked') byCoreId = createIdentityIndex()
    if (entry.type !== 'looked_up') continue
    for (const [ordinal, id] of [...entry.same, ...entry.shared]) byCoreId.add(id, ordinal)
    for (const [ordinal, id] of entry.differs) byCoreId.add(id, ordinal)
  }
  const byAccountId = createIdentityIndex()
  /** Primary users of shared accounts, each with an identity that shares the account. */
  const sharedPrimaries = new Map<number, number>()
  return {
    add(ordinal, { externalUserId, coreUserId, accountId }) {
      const sharers = new Set<number>()
      const linkedHere = sharedPrimaries.get(ordinal)
      if (linkedHere !== undefined) sharers.add(linkedHere)
      const sameCoreId = byCoreId.add(coreUserId, ordinal)
      if (sameCoreId !== undefined) sharers.add(sameCoreId)
      if (accountId !== externalUserId && accountId !== coreUserId) {
        const primary = survey.ordinalOf(accountId)
        if (primary !== undefined) {
          sharers.add(primary)
          sharedPrimaries.set(primary, ordinal)
        }
        const linked = byAccountId.add(accountId, ordinal)
        if (linked !== undefined) sharers.add(linked)
      }
      sharers.delete(ordinal)
      return [...sharers].filter((sharer) => hasAccount(ledger.state, sharer))
    },
  }
}
