import { findAccount } from '../account/find-account.js'
import { importOne } from '../account/import-one.js'
import type { CoreClient, CoreUser } from '../core/core-client.js'
import type { ImportUser } from '../core/import-user.js'
import { holderOf, recipeKeysOf } from '../record-validation/login-keys.js'
import {
  type EndpointResult,
  faultsOf,
  need,
  type RequestContext,
  refused,
  undecided,
} from './endpoint-result.js'

/**
 * Finds the account under the external id, or imports the user. Of equal requests at once, one creates the account:
 * the external id is unique in the core, so each other import is refused there and finds it. The import goes on
 * after the timeout of the request.
 */
export async function findOrImport(
  user: ImportUser & { readonly externalUserId: string },
  context: RequestContext,
  core: CoreClient,
): Promise<EndpointResult> {
  const found = await need(context, 'core_unavailable', () =>
    findAccount(core, user.externalUserId),
  )
  if (found !== undefined) return judgeAccount(found.user, user)
  // Unknown even if the core is not reached, because an earlier request may have created the account.
  return need(context, 'outcome_unknown', () => importAccount(core, user))
}

/**
 * Creates or finds the account.
 *
 * @throws RequestEnded if the user gets none, CoreError if the core fails.
 */
export async function importAccount(core: CoreClient, user: ImportUser): Promise<EndpointResult> {
  const imported = await importOne(core, user)
  switch (imported.outcome) {
    case 'created':
      return { type: 'accepted', reason: 'created', userId: imported.userId }
    case 'existing': {
      const account = await core.user(imported.coreUserId)
      if (account === undefined) throw undecided('outcome_unknown')
      return judgeAccount(account, user)
    }
    case 'conflict':
      throw refused('account_conflict', { faults: imported.codes })
    case 'invalid':
      throw refused('record_invalid', { faults: faultsOf(imported.errors) })
  }
}

/** Checks the logins, because external ids are global and the account may belong to a user of another issuer. */
function judgeAccount(account: CoreUser, user: ImportUser): EndpointResult {
  if (!holdsLoginOf(account, user)) throw refused('account_foreign')
  return { type: 'accepted', reason: 'existing', userId: account.id }
}

/**
 * Whether a login of the record can sign in to the account: the same recipe, a common tenant, and the same
 * e-mail address, phone number or third-party login, in the form that the core stores.
 */
export function holdsLoginOf(account: CoreUser, record: ImportUser): boolean {
  const held = new Set(recipeKeysOf(holderOf(account)))
  return recipeKeysOf(record).some((key) => held.has(key))
}
