import type { CoreTenant } from '../../core/reply.js'
import type { UserNeeds } from '../../record-validation/requirements.js'

interface Needed {
  /** Line of the first record that needs it. */
  readonly line: number
  readonly records: number
}

interface MissingProvider extends Needed {
  /** Tenants that do not list it. */
  readonly tenants: ReadonlySet<string>
}

/** The tenants, roles, features and providers that the records of a source need, by name. */
export interface SourceNeeds {
  add(needs: UserNeeds, line: number): void
  readonly tenants: ReadonlyMap<string, Needed>
  readonly roles: ReadonlyMap<string, Needed>
  readonly features: ReadonlyMap<string, Needed>
  /** Third-party providers that a tenant of the core does not list. */
  readonly missingProviders: ReadonlyMap<string, MissingProvider>
}

export function sourceNeeds(coreTenants: readonly CoreTenant[]): SourceNeeds {
  const listed = new Map(coreTenants.map((tenant) => [tenant.tenantId, tenant.thirdPartyIds]))
  const tenants = new Map<string, Needed>()
  const roles = new Map<string, Needed>()
  const features = new Map<string, Needed>()
  const providers = new Map<string, Needed>()
  const lacking = new Map<string, Set<string>>()
  return {
    tenants,
    roles,
    features,
    get missingProviders() {
      return new Map(
        [...providers].map(([provider, needed]) => [
          provider,
          { ...needed, tenants: lacking.get(provider) ?? new Set() },
        ]),
      )
    },
    add(needs, line) {
      for (const tenant of needs.tenants) count(tenants, tenant, line)
      for (const role of needs.roles) count(roles, role, line)
      for (const feature of needs.features) count(features, feature, line)
      const missing = needs.providers.filter(
        ({ tenantId, thirdPartyId }) => listed.get(tenantId)?.includes(thirdPartyId) === false,
      )
      for (const { tenantId, thirdPartyId } of missing) {
        lacking.set(thirdPartyId, (lacking.get(thirdPartyId) ?? new Set()).add(tenantId))
      }
      for (const id of new Set(missing.map(({ thirdPartyId }) => thirdPartyId))) {
        count(providers, id, line)
      }
    },
  }
}

function count(names: Map<string, Needed>, name: string, line: number): void {
  const before = names.get(name)
  names.set(name, { line: before?.line ?? line, records: (before?.records ?? 0) + 1 })
}
