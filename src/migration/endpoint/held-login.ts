import type { ImportLoginMethod, ImportUser } from '../core/import-user.js'
import type { CoreLoginMethod, CoreUser } from '../core/reply.js'

/** Where a login method is when it says nothing of tenants. */
const DEFAULT_TENANTS = ['public']

/**
 * Whether the account can be signed in to by a login of the record: the same recipe, a tenant in
 * common, and the same e-mail address, phone number or provider's pair, as the core normalises them.
 */
export const holdsLoginOf = (account: CoreUser, record: ImportUser): boolean =>
  record.loginMethods.some((wanted) =>
    account.loginMethods.some((held) => isSameLogin(held, wanted)),
  )

function isSameLogin(held: CoreLoginMethod, wanted: ImportLoginMethod): boolean {
  const tenants = (wanted.tenantIds ?? DEFAULT_TENANTS).map(normalized)
  if (held.recipeId !== wanted.recipeId) return false
  if (!held.tenantIds.some((tenant) => tenants.includes(normalized(tenant)))) return false
  switch (wanted.recipeId) {
    case 'emailpassword':
      return isSame(held.email, wanted.email)
    case 'passwordless':
      return isSame(held.email, wanted.email) || isSame(held.phoneNumber, wanted.phoneNumber)
    case 'thirdparty':
      return (
        isGiven(wanted.thirdPartyId) &&
        isGiven(wanted.thirdPartyUserId) &&
        held.thirdParty?.id === wanted.thirdPartyId.trim() &&
        held.thirdParty.userId === wanted.thirdPartyUserId.trim()
      )
  }
}

const isSame = (held: string | undefined, wanted: string | undefined): boolean =>
  isGiven(held) && isGiven(wanted) && normalized(held) === normalized(wanted)

const isGiven = (value: string | undefined): value is string => value !== undefined && value !== ''

const normalized = (value: string): string => value.trim().toLowerCase()
