import { findingText } from '../../account/without-account-data.js'
import type { CoreTenant } from '../../core/core-client.js'
import type { UserFinding, UserWarning } from '../../record-validation/user-finding.js'
import { needsOf, type UserNeeds, validateUser } from '../../record-validation/validate-user.js'
import type { MigrationContext } from '../migration-context.js'
import type { IndexedRecord } from '../source-index.js'

/** The tenants, roles and features of the core. */
export interface Catalogue {
  readonly tenants: readonly CoreTenant[]
  readonly roles: readonly string[]
  readonly features: readonly string[]
}

export async function readCatalogue({ core, signal }: MigrationContext): Promise<Catalogue> {
  const [tenants, roles, features] = await Promise.all([
    core.tenants({ signal }),
    core.roles({ signal }),
    core.features({ signal }),
  ])
  return { tenants, roles, features }
}

/** The result of validating the whole source. */
export interface SourceExamination {
  /** Record indexes, in ascending order. */
  readonly invalid: readonly number[]
  readonly errors: FindingTally
  readonly warnings: FindingTally
  readonly needs: SourceNeeds
}

export async function examineSource(
  { sourceIndex, settings, signal }: MigrationContext,
  coreTenants: readonly CoreTenant[],
): Promise<SourceExamination> {
  const invalid: number[] = []
  const errors = createTally()
  const warnings = createTally()
  const needs = sourceNeeds(coreTenants)
  const accepted = new Set<string>(settings.acceptWarnings)
  const warn = (record: IndexedRecord, found: readonly UserWarning[]): void => {
    for (const warning of found) if (!accepted.has(warning.code)) warnings.add([warning], record)
  }
  for await (const record of sourceIndex.records(0, signal)) {
    const validation = validateUser(record.value)
    warn(record, validation.warnings)
    if (!validation.ok) {
      invalid.push(record.recordIndex)
      errors.add(validation.errors, record)
      continue
    }
    needs.add(needsOf(validation.user), record.line)
  }
  return { invalid, errors, warnings, needs }
}

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

function sourceNeeds(coreTenants: readonly CoreTenant[]): SourceNeeds {
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

interface TalliedFinding {
  /** Contains no account data. */
  readonly message: string
  /** Line of the first record with the finding. */
  readonly line: number
  readonly records: number
}

/** Groups the findings of many records by kind, each with its first line and its number of records. */
export interface FindingTally {
  /** Adds the findings of one record as one kind, so that the record counts once. */
  add(findings: readonly UserFinding[], record: IndexedRecord): void
  all(): readonly TalliedFinding[]
}

/** Above this number of kinds, records are grouped by the code of their first finding. */
const MAX_KINDS = 200
/** Maximum number of findings in one message. The report of the identity has all of them. */
const MAX_TEXTS = 3

interface Tallied extends TalliedFinding {
  readonly lastLine: number
}

function createTally(): FindingTally {
  const kinds = new Map<string, Tallied>()
  return {
    add(findings, { line, value }) {
      const [first] = findings
      if (first === undefined) return
      const all = [...new Set(findings.map(kindOf))].join(' ')
      const kind = kinds.has(all) || kinds.size < MAX_KINDS ? all : first.code
      const before = kinds.get(kind)
      if (before === undefined) {
        kinds.set(kind, { message: messageOf(findings, value), line, records: 1, lastLine: line })
      } else if (before.lastLine !== line) {
        kinds.set(kind, { ...before, records: before.records + 1, lastLine: line })
      }
    },
    all: () => [...kinds.values()].map(({ lastLine: _, ...tallied }) => tallied),
  }
}

function messageOf(findings: readonly UserFinding[], value: unknown): string {
  const texts = findings
    .slice(0, MAX_TEXTS)
    .map((each) => `${each.code} in ${each.field || 'the record'}: ${findingText(each, value)}`)
  const others = findings.length - texts.length
  return [...texts, ...(others > 0 ? [`and ${others} more`] : [])].join('; ')
}

/** Returns the same kind for the same member of different list items. */
const kindOf = ({ field, code }: UserFinding): string =>
  `${code} ${field.replaceAll(/\[\d+\]/g, '[]')}`
