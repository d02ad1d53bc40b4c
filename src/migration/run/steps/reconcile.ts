import { reconcileUser } from '../../account/reconcile-user.js'
import type { ImportUser } from '../../core/import-user.js'
import { createDigestTable } from '../../source/digest-table.js'
import { forEachAtOnce } from '../for-each-concurrently.js'
import type { Work } from '../migration-context.js'
import type { SurveyedRecord } from '../read-source.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { type EntryOf, lookedUpEntry } from '../state/journal-entry.js'
import { type RunState, stateOf } from '../state/run-state.js'
import { ownRowOf, recordsInForce } from './records.js'

/** Number of identities that are journaled together. */
const CHUNK = 200

/** Looks up each identity that is due, then checks that the core has no unrecorded row of this run. */
export async function reconcile(work: Work): Promise<void> {
  const { ledger, settings } = work
  const seen = await accountsSeen(work)
  let results = lookedUpEntry({})
  let users = 0
  const flush = async (): Promise<void> => {
    if (users === 0) return
    const written = results
    const about = { users }
    results = lookedUpEntry({})
    users = 0
    await ledger.write(written)
    work.tell('reconciling', about)
  }
  await forEachAtOnce(dueRecords(work), settings.lookUps, async (record) => {
    const addResult = await lookUp(work, record, seen)
    if (addResult === undefined) return
    addResult(results)
    users += 1
    if (users >= CHUNK) await flush()
  })
  await flush()
  const phase = (await hasUnrecordedRow(work)) ? 'wait' : 'done'
  await ledger.write({ type: 'rest', phase })
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
function dueRecords(work: Work): AsyncGenerator<SurveyedRecord> {
  const { state } = work.ledger
  const waiting = new Set([...state.stalledRows.values()].map(({ record }) => record))
  return recordsInForce(work, (ordinal) => {
    // An invalid record without a code failed validation, so the core would not accept it.
    const isRefused =
      stateOf(state, ordinal) === IDENTITY.invalid && state.failureCodes[ordinal] === 0
    return DUE.has(stateOf(state, ordinal)) && !waiting.has(ordinal) && !isRefused
  })
}

type LookedUp = EntryOf<'looked_up'>

/** Returns a function that adds the result to an entry; `undefined` if there is none. */
async function lookUp(
  { core, ledger, signal }: Work,
  { ordinal, externalUserId, value }: SurveyedRecord,
  seen: AccountsSeen,
): Promise<((results: LookedUp) => void) | undefined> {
  if (MAY_HAVE_ACCOUNT_SINCE.has(stateOf(ledger.state, ordinal))) {
    const coreUserId = await core.coreIdOf(externalUserId, { signal })
    if (coreUserId === undefined) return undefined
  }
  const user = value as unknown as ImportUser
  const found = await reconcileUser(core, { externalUserId, user }, { signal })
  if (found.state === 'missing') {
    return ({ missing }) => missing.push([ordinal, found.heldBy ?? null])
  }
  const { coreUserId, accountId, differences } = found
  const sharers = seen.add(ordinal, { externalUserId, coreUserId, accountId })
  return ({ same, differs, shared }) => {
    if (sharers.length > 0) {
      for (const sharer of [...sharers, ordinal]) shared.push([sharer, coreUserId])
    } else if (differences.length > 0) differs.push([ordinal, coreUserId, [...differences]])
    else same.push([ordinal, coreUserId])
  }
}

/** A call without a reply may have taken effect during the look-ups. */
async function hasUnrecordedRow(work: Work): Promise<boolean> {
  const { stalledRows } = work.ledger.state
  for await (const row of work.core.rows(undefined, { signal: work.signal })) {
    if (!stalledRows.has(row.id) && ownRowOf(work, row) !== undefined) return true
  }
  return false
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
  let byCoreId = createDigestTable()
  for await (const entry of ledger.entries()) {
    if (entry.type === 'rest' && entry.reverify) byCoreId = createDigestTable()
    if (entry.type !== 'looked_up') continue
    for (const [ordinal, id] of [...entry.same, ...entry.shared]) byCoreId.add(id, ordinal)
    for (const [ordinal, id] of entry.differs) byCoreId.add(id, ordinal)
  }
  const byAccountId = createDigestTable()
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
