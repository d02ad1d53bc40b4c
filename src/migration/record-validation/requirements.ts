import type { ImportUser } from '../core/import-user.js'
import { trimmed } from './core-trim.js'
import { coreTenantIds, PUBLIC_TENANT } from './tenant-ids.js'
import type { Feature } from './validation-context.js'

/** The tenants, roles, features and providers that the core needs to import a user. */
export interface UserNeeds {
  /** Ids as the core stores them, including `public`. */
  readonly tenants: readonly string[]
  readonly roles: readonly string[]
  /** `mfa` includes `account_linking`. */
  readonly features: readonly Feature[]
  /** Third-party providers by tenant. The backend may configure them instead of the core. */
  readonly providers: readonly { readonly tenantId: string; readonly thirdPartyId: string }[]
}

/** Expects a user that is valid without a context. */
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
