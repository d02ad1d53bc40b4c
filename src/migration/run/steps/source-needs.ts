import type { UserNeeds } from '../../user/needs.js'

interface Needed {
  /** Of the first record that needs it. */
  readonly line: number
  readonly records: number
}

/** What the records of a source need of the core, by name. */
export interface SourceNeeds {
  add(needs: UserNeeds, line: number): void
  readonly tenants: ReadonlyMap<string, Needed>
  readonly roles: ReadonlyMap<string, Needed>
  readonly features: ReadonlyMap<string, Needed>
  /** By tenant, then by provider. */
  readonly providers: ReadonlyMap<string, ReadonlyMap<string, Needed>>
}

export function sourceNeeds(): SourceNeeds {
  const tenants = new Map<string, Needed>()
  const roles = new Map<string, Needed>()
  const features = new Map<string, Needed>()
  const providers = new Map<string, Map<string, Needed>>()
  return {
    tenants,
    roles,
    features,
    providers,
    add(needs, line) {
      for (const tenant of needs.tenants) count(tenants, tenant, line)
      for (const role of needs.roles) count(roles, role, line)
      for (const feature of needs.features) count(features, feature, line)
      for (const { tenantId, thirdPartyId } of needs.providers) {
        const ofTenant = providers.get(tenantId) ?? new Map<string, Needed>()
        providers.set(tenantId, ofTenant)
        count(ofTenant, thirdPartyId, line)
      }
    },
  }
}

function count(names: Map<string, Needed>, name: string, line: number): void {
  const before = names.get(name)
  names.set(name, { line: before?.line ?? line, records: (before?.records ?? 0) + 1 })
}
