import type { ImportUser } from '../core/import-user.js'
import { trimmed } from './core-trim.js'
import { coreTenantIds, PUBLIC_TENANT } from './tenant-ids.js'
import type { Feature } from './validation-context.js'

/** What the core must have before a user can become an account. */
export interface UserNeeds {
  /** As the core names them, `public` too. */
  readonly tenants: readonly string[]
  readonly roles: readonly string[]
  /** `account_linking` is met by `mfa` as well. */
  readonly features: readonly Feature[]
  /** Third-party providers by tenant; the backend may hold them instead of the core. */
  readonly providers: readonly { readonly tenantId: string; readonly thirdPartyId: string }[]
}

/** Takes a user that is valid without a context. */
export function needsOf(user: ImportUser): UserNeeds {
  const { loginMethods, userRoles = [] } = user
  const tenants = new Set<string>()
  for (const { tenantIds } of [...loginMethods, ...userRoles]) {
    for (const tenantId of coreTenantIds(tenantIds)) tenants.add(tenantId)
  }
  return {
    tenants: [...tenants],
    roles: [...new Set(userRoles.map(({ role }) => trimmed(role)))],
    features: featuresOf(user),
    providers: loginMethods.flatMap(({ recipeId, tenantIds, thirdPartyId }) => {
      if (recipeId !== 'thirdparty' || thirdPartyId === undefined) return []
      return coreTenantIds(tenantIds).map((tenantId) => ({ tenantId, thirdPartyId }))
    }),
  }
}

function featuresOf({ loginMethods, userRoles = [], totpDevices }: ImportUser): Feature[] {
  const features: Feature[] = []
  if (loginMethods.length > 1 || loginMethods.some(({ isPrimary }) => isPrimary === true)) {
    features.push('account_linking')
  }
  const isTenancyUsed = [...loginMethods, ...userRoles].some(({ tenantIds }) =>
    tenantIds?.some((tenantId) => tenantId !== PUBLIC_TENANT),
  )
  if (isTenancyUsed) features.push('multi_tenancy')
  if (totpDevices !== undefined) features.push('mfa')
  return features
}
