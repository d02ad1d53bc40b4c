import { reconcileUser } from '../../account/reconcile-user.js'
import {
  type IndexedRecord,
  lookUpEach,
  type MigrationContext,
  unrecordedRows,
  userOf,
} from '../records.js'
import type { Finding } from '../state/journal-entry.js'
import {
  detailsOf,
  type IdentityCode,
  identityCode,
  type RunState,
  sizeOf,
} from '../state/run-state.js'

/** Looks up each identity that is due, then checks that the core has no unrecorded row of this run. */
export async function reconcile(ctx: MigrationContext): Promise<void> {
  const accounts = findSharedAccounts(ctx)
  await lookUpEach(ctx, 'reconciling', isDueIn(ctx), (record) => lookUp(ctx, record, accounts))
  const phase = (await hasUnrecordedRow(ctx)) ? 'wait' : 'done'
  await ctx.journaled.write({ type: 'rest', phase })
}

/** Identities that failed or are held back. `migrationEndpoint` may have created their account since. */
const MAY_HAVE_ACCOUNT_SINCE: ReadonlySet<IdentityCode> = new Set(['failed', 'invalid'])

const DUE: ReadonlySet<IdentityCode> = new Set(['staged', ...MAY_HAVE_ACCOUNT_SINCE])

/** Skips identities whose rows still wait at the core after a stall, and invalid records. */
function isDueIn({ journaled: { state } }: MigrationContext): (recordIndex: number) => boolean {
  const waiting = new Set([...state.stalledRows.values()].map(({ record }) => record))
  return (recordIndex) => {
    // An invalid record without a code failed validation, so the core would not accept it.
    const { code } = detailsOf(state, recordIndex)
    const isInvalid = identityCode(state, recordIndex) === 'invalid' && code === undefined
    return DUE.has(identityCode(state, recordIndex)) && !waiting.has(recordIndex) && !isInvalid
  }
}

async function lookUp(
  { core, journaled, signal }: MigrationContext,
  record: IndexedRecord,
  accounts: SharedAccounts,
): Promise<Finding | undefined> {
  const { recordIndex, externalUserId } = record
  if (MAY_HAVE_ACCOUNT_SINCE.has(identityCode(journaled.state, recordIndex))) {
    const coreUserId = await core.coreIdOf(externalUserId, { signal })
    if (coreUserId === undefined) return undefined
  }
  const identity = { externalUserId, user: userOf(record) }
  const found = await reconcileUser(core, identity, { signal })
  if (found.state === 'missing') return { missing: [[recordIndex, found.heldBy ?? null]] }
  const { coreUserId, accountId, differences } = found
  const sharedWith = accounts.add(recordIndex, { externalUserId, coreUserId, accountId })
  if (sharedWith.length > 0) {
    return { shared: [...sharedWith, recordIndex].map((other) => [other, coreUserId]) }
  }
  return differences.length > 0
    ? { differs: [[recordIndex, coreUserId, differences]] }
    : { same: [[recordIndex, coreUserId]] }
}

/** Such a row exists if a call without a reply has taken effect during the look-ups. */
async function hasUnrecordedRow(ctx: MigrationContext): Promise<boolean> {
  const { stalledRows } = ctx.journaled.state
  for await (const { row } of unrecordedRows(ctx)) if (!stalledRows.has(row.id)) return true
  return false
}

interface FoundAccount {
  readonly externalUserId: string
  readonly coreUserId: string
  /** The `id` that the core returns for the account: the external id of its primary user. */
  readonly accountId: string
}

/** Finds accounts that several identities share. */
interface SharedAccounts {
  /** Returns the record indexes of the other identities with this account. */
  add(recordIndex: number, account: FoundAccount): readonly number[]
}

const NOT_COMPARED: ReadonlySet<IdentityCode> = new Set([
  'pending',
  'to_import',
  'invalid',
  'accepted',
  'left_out',
])

/** Excludes identities that a person decided on and those that were not staged. */
const hasAccount = (state: RunState, recordIndex: number): boolean =>
  !NOT_COMPARED.has(identityCode(state, recordIndex))

/** Identities whose account was looked up since the last `reconcile` was requested. */
const COMPARED: ReadonlySet<IdentityCode> = new Set(['reconciled', 'differs', 'shared'])

function findSharedAccounts({
  journaled: { state },
  sourceIndex,
}: MigrationContext): SharedAccounts {
  const byCoreId = new Map<string, number>()
  for (let recordIndex = 0; recordIndex < sizeOf(state); recordIndex++) {
    if (!COMPARED.has(identityCode(state, recordIndex))) continue
    const { coreUserId } = detailsOf(state, recordIndex)
    if (coreUserId !== undefined) byCoreId.set(coreUserId, recordIndex)
  }
  const byAccountId = new Map<string, number>()
  /** Primary users of shared accounts, each with an identity that shares the account. */
  const sharedPrimaries = new Map<number, number>()
  return {
    add(recordIndex, { externalUserId, coreUserId, accountId }) {
      const sharedWith = [sharedPrimaries.get(recordIndex), byCoreId.get(coreUserId)]
      byCoreId.set(coreUserId, recordIndex)
      if (accountId !== externalUserId && accountId !== coreUserId) {
        const primary = sourceIndex.recordIndexOf(accountId)
        sharedWith.push(primary, byAccountId.get(accountId))
        if (primary !== undefined) sharedPrimaries.set(primary, recordIndex)
        byAccountId.set(accountId, recordIndex)
      }
      return [...new Set(sharedWith)]
        .filter((other) => other !== undefined)
        .filter((other) => other !== recordIndex && hasAccount(state, other))
    },
  }
}
