import type { ImportRules } from './import-rules.js'
import type { LoginMethod, ReadContext, UserRole } from './imported-user.js'
import { trim } from './java-text.js'

/** Returns the tenants in the core's spelling, without the invalid ones. */
export function readTenantIds(
  tenantIds: readonly string[],
  context: ReadContext,
  { suffix, errors }: { readonly suffix: string; readonly errors: string[] },
): string[] {
  return tenantIds.flatMap((tenantId) => {
    if (tenantId === 'public') return [tenantId]
    if (!context.features.has('multi_tenancy')) {
      errors.push('Multitenancy must be enabled before importing users to a different tenant.')
      return []
    }
    const normalised = trim(tenantId).toLowerCase()
    if (context.tenants.has(normalised)) return [normalised]
    errors.push(`Invalid tenantId: ${tenantId}${suffix}`)
    return []
  })
}

/** The core's last checks: each role's tenants must be in the login methods, which must have tenants. */
export function compareTenants(
  roles: readonly UserRole[],
  methods: readonly LoginMethod[],
  { rules, errors }: { readonly rules: ImportRules; readonly errors: string[] },
): void {
  for (const tenantId of roles.flatMap((role) => role.tenantIds)) {
    if (tenantId === 'public' || methods.some((method) => method.tenantIds.includes(tenantId))) {
      continue
    }
    errors.push(`TenantId ${tenantId} for a user role does not exist in loginMethods.`)
  }
  for (const method of methods) {
    if (method.tenantIds.length > 0) continue
    errors.push(`LoginMethod '${printed(method, rules)}' has no tenantId`)
  }
}

function printed(method: LoginMethod, { printsMethods }: ImportRules): string {
  if (printsMethods) return JSON.stringify(method)
  const hash = method.superTokensUserId.slice(0, 8)
  return `io.supertokens.pluginInterface.bulkimport.BulkImportUser$LoginMethod@${hash}`
}
