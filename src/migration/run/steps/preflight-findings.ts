import type { CoreTenant } from '../../core/reply.js'
import type { PreflightFinding } from '../report.js'
import type { SourceExamination } from './examine-source.js'
import type { FindingTally } from './finding-tally.js'
import type { SourceNeeds } from './source-needs.js'

/** The tenants, roles and features of the core. */
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
    ...missingProviders(needs),
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

/** Only a notice, because the backend's own configuration may contain the provider. */
const missingProviders = ({ missingProviders: missing }: SourceNeeds): PreflightFinding[] =>
  [...missing].map(([provider, { tenants, ...about }]) => ({
    code: 'provider_missing',
    severity: 'notice',
    message: `The core lacks the provider ${provider} in ${tenantsInWords([...tenants])}; the backend may configure it.`,
    ...about,
  }))

/** Maximum number of tenants in one message. */
const MAX_TENANTS = 5

function tenantsInWords(tenants: readonly string[]): string {
  const named = tenants.slice(0, MAX_TENANTS).join(', ')
  if (tenants.length === 1) return `the tenant ${named}`
  const others = tenants.length - MAX_TENANTS
  return `the tenants ${named}${others > 0 ? ` and ${others} more` : ''}`
}

function ofRecords(
  tally: FindingTally,
  code: PreflightFinding['code'],
  severity: PreflightFinding['severity'],
): PreflightFinding[] {
  return tally.all().map((tallied) => ({ code, severity, ...tallied }))
}
