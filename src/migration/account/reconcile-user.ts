import type { CallOptions, CoreClient } from '../core/core-client.js'
import { type AskedIdentity, readAccount } from './account.js'
import { compareAccount } from './compare-account.js'
import { findHolder } from './conflicting-account.js'

/** What looking an identity up has shown. */
export type Reconciliation =
  | {
      readonly state: 'reconciled' | 'differs'
      readonly coreUserId: string
      /** As the core shows the account; another's external id where the account is shared. */
      readonly accountId: string
      /** As `compareAccount` gives them; none when reconciled. */
      readonly differences: readonly string[]
    }
  | {
      readonly state: 'missing'
      /** The core's id of the account that holds a login: it may be the lost one, unmapped. */
      readonly heldBy?: string
    }

/**
 * Looks one identity up, and compares its account with its record.
 *
 * @throws CoreError when the core cannot be asked.
 */
export async function reconcileUser(
  core: CoreClient,
  identity: AskedIdentity,
  options: CallOptions = {},
): Promise<Reconciliation> {
  const account = await readAccount(core, identity, options)
  if (account === undefined) {
    const heldBy = await findHolder(core, identity.user, options)
    return { state: 'missing', ...(heldBy !== undefined && { heldBy }) }
  }
  const differences = compareAccount(identity.user, account)
  return {
    state: differences.length === 0 ? 'reconciled' : 'differs',
    coreUserId: account.coreUserId,
    accountId: account.user.id,
    differences,
  }
}
