import type { CoreTenant } from '../../core/reply.js'
import type { PreflightFinding } from '../report.js'
import type { SourceExamination } from './examine-source.js'
import type { FindingTally } from './finding-tally.js'
import type { SourceNeeds } from './source-needs.js'

/** What the core has. */
export interface Catalogue {
  readonly tenants: readonly CoreTenant[]
  readonly roles: readonly string[]
  readonly features: readonly string[]
}

export function sourceFindings(
  { errors, warnings, needs }: SourceExamination,
  catalogue: Catalogue,
): PreflightFinding[] {
  return [
    ...missingNames(needs, catalogue),
    ...missingProviders(needs, catalogue),
    ...ofRecords(warnings, 'warning_not_accepted', 'fault'),
    ...ofRecords(errors, 'record_invalid', 'notice'),
  ]
}

function missingNames(needs: SourceNeeds, catalogue: Catalogue): PreflightFinding[] {
  const tenants = new Set(['public', ...catalogue.tenants.map(({ tenantId }) => tenantId)])
  const roles = new Set(catalogue.roles)
  const features = new Set(catalogue.features)
  if (features.has('mfa')) features.add('account_linking')
  return [
    ...missing('tenant_missing', needs.tenants, tenants, (name) => `the tenant ${name}`),
    ...missing('role_missing', needs.roles, roles, (name) => `the role ${name}`),
    ...missing('feature_missing', needs.features, features, (name) => `the feature ${name}`),
  ]
}

function missing(
  code: PreflightFinding['code'],
  needed: SourceNeeds['roles'],
  present: ReadonlySet<string>,
  nameOf: (name: string) => string,
): PreflightFinding[] {
  return [...needed].flatMap(([name, about]): PreflightFinding[] => {
    if (present.has(name)) return []
    return [{ code, severity: 'fault', message: `The core lacks ${nameOf(name)}.`, ...about }]
  })
}

/** A notice: the backend's own configuration may hold the provider. */
function missingProviders(needs: SourceNeeds, { tenants }: Catalogue): PreflightFinding[] {
  return tenants.flatMap(({ tenantId, thirdPartyIds }) => {
    const needed = needs.providers.get(tenantId)
    if (needed === undefined || thirdPartyIds === undefined) return []
    const present = new Set(thirdPartyIds)
    return missing(
      'provider_missing',
      needed,
      present,
      (provider) => `the provider ${provider} in the tenant ${tenantId}; the backend may hold it`,
    ).map((finding) => ({ ...finding, severity: 'notice' as const }))
  })
}

function ofRecords(
  tally: FindingTally,
  code: PreflightFinding['code'],
  severity: PreflightFinding['severity'],
): PreflightFinding[] {
  return tally.all().map(({ finding, message, line, records }) => ({
    code,
    severity,
    message: `${finding.code} in ${finding.field || 'the record'}: ${message}`,
    line,
    records,
  }))
}
