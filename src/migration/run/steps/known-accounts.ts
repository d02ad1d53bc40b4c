import { createIdentityIndex } from '../../source/identity-index.js'
import type { Work } from '../migration-context.js'
import { IDENTITY, type IdentityCode } from '../state/identity-state.js'
import { type RunState, stateOf } from '../state/run-state.js'

interface Account {
  readonly externalUserId: string
  readonly coreUserId: string
  /** As the core shows the account: the external id of its primary user. */
  readonly accountId: string
}

/** Finds accounts that are those of several identities. */
export interface AccountsSeen {
  /** Ordinals of the others that have the same account. */
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

/** What a person has decided stays so, and what was not staged is not looked up. */
const hasAccount = (state: RunState, ordinal: number): boolean =>
  !WITHOUT_ACCOUNT.has(stateOf(state, ordinal))

/** What earlier processes of the same round have seen is in the journal. */
export async function accountsSeen({ ledger, survey }: Work): Promise<AccountsSeen> {
  let byCoreId = createIdentityIndex()
  for await (const entry of ledger.entries()) {
    if (entry.type === 'reconcile_asked') byCoreId = createIdentityIndex()
    if (entry.type !== 'looked_up') continue
    for (const [ordinal, id] of [...entry.same, ...entry.shared]) byCoreId.add(id, ordinal)
    for (const [ordinal, id] of entry.differs) byCoreId.add(id, ordinal)
  }
  const byAccountId = createIdentityIndex()
  /** Primary users of shared accounts, with an identity that shares it. */
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
