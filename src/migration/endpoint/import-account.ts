import type { CoreClient } from '../core/core-client.js'
import type { ImportUser } from '../core/import-user.js'
import type { CoreLoginMethod, CoreUser } from '../core/reply.js'
import { importOne } from '../import-one/import-one.js'
import { type LoginSource, recipeKeysOf } from '../record-validation/login-keys.js'
import { faultsOf, refused, undecided, type Verdict } from './endpoint-result.js'

/** Makes the account, or finds it. Never rejects. */
export async function importAccount(core: CoreClient, user: ImportUser): Promise<Verdict> {
  try {
    const imported = await importOne(core, user)
    switch (imported.outcome) {
      case 'created':
        return { type: 'accepted', reason: 'created', userId: imported.userId }
      case 'existing': {
        const account = await core.user(imported.coreUserId)
        return account === undefined ? undecided(UNKNOWN) : judgeAccount(account, user)
      }
      case 'conflict':
        return refused('account_conflict', { faults: imported.codes })
      case 'invalid':
        return refused('record_invalid', { faults: faultsOf(imported.errors) })
    }
  } catch (error) {
    return undecided(UNKNOWN, error)
  }
}

/** What the account under the external id says; `undefined` when there is none. */
export async function findAccount(
  core: CoreClient,
  externalUserId: string,
  user: ImportUser,
): Promise<Verdict | undefined> {
  const coreUserId = await core.coreIdOf(externalUserId)
  const account = coreUserId === undefined ? undefined : await core.user(coreUserId)
  return account && judgeAccount(account, user)
}

/** Also where the core was not reached: an earlier request may have made the account. */
const UNKNOWN = 'outcome_unknown'

/** External ids are global in the core, issuers are not: the account may be of another issuer's user. */
const judgeAccount = (account: CoreUser, user: ImportUser): Verdict =>
  holdsLoginOf(account, user)
    ? { type: 'accepted', reason: 'existing', userId: account.id }
    : refused('account_foreign')

/**
 * Whether the account can be signed in to by a login of the record: the same recipe, a tenant in
 * common, and the same e-mail address, phone number or provider's pair, as the core keeps them.
 */
export function holdsLoginOf(account: CoreUser, record: ImportUser): boolean {
  const held = new Set(recipeKeysOf({ loginMethods: account.loginMethods.map(sourceOf) }))
  return recipeKeysOf(record).some((key) => held.has(key))
}

const sourceOf = ({ thirdParty, ...method }: CoreLoginMethod): LoginSource =>
  thirdParty === undefined
    ? method
    : { ...method, thirdPartyId: thirdParty.id, thirdPartyUserId: thirdParty.userId }
