import type { CoreTenant } from '../../core/core-client.js'
import { PUBLIC_TENANT } from '../../record-validation/stored-form.js'
import type { UserFinding } from '../../record-validation/user-finding.js'
import { needsOf, type UserNeeds } from '../../record-validation/validate-user.js'
import type { MigrationContext } from '../migration-context.js'
import type { PreflightFinding } from '../report.js'
import { type IndexedRecord, validateRecord } from '../source-index.js'

/** The tenants, roles and features of the core. */
interface Catalogue {
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

/** Validates the whole source. Returns the indexes of the invalid records, in ascending order, and findings. */
export async function examineSource(
  { sourceIndex, settings, signal }: MigrationContext,
  catalogue: Catalogue,
) {
  const invalid: number[] = []
  const missing = tallyMissing(catalogue)
  const warnings = tallyRecords('warning_not_accepted', 'fault')
  const errors = tallyRecords('record_invalid', 'notice')
  const accepted = new Set<string>(settings.acceptWarnings)
  for await (const record of sourceIndex.records(0, signal)) {
    const validation = validateRecord(record)
    if (!validation.ok) {
      // Its warnings count once a correction has made it valid.
      invalid.push(record.recordIndex)
      errors.add(validation.errors, record)
      continue
    }
    missing.add(needsOf(validation.user), record.line)
    for (const warning of validation.warnings) {
      if (!accepted.has(warning.code)) warnings.add([warning], record)
    }
  }
  const findings = [missing, warnings, errors].flatMap((tally) => tally.findings())
  return { invalid, findings }
}

interface Tallied {
  /** Line of the first record of the kind. */
  readonly line: number
  readonly records: number
  readonly lastLine: number
}

/** Counts records by kind. */
function createTally() {
  const kinds = new Map<string, Tallied>()
  return {
    /** Counts a record once per kind. Returns whether it is the first. */
    count(kind: string, line: number): boolean {
      const before = kinds.get(kind)
      if (before?.lastLine === line) return false
      const records = (before?.records ?? 0) + 1
      kinds.set(kind, { line: before?.line ?? line, records, lastLine: line })
      return before === undefined
    },
    findings: (
      code: PreflightFinding['code'],
      severity: PreflightFinding['severity'],
      describe: (kind: string) => string,
    ): PreflightFinding[] =>
      [...kinds].map(([kind, { line, records }]) => ({
        code,
        severity,
        message: describe(kind),
        line,
        records,
      })),
  }
}

/** Counts the records that need a tenant, role, feature or provider that the core lacks. */
function tallyMissing({ tenants, roles, features }: Catalogue) {
  const listed = new Map(tenants.map(({ tenantId, thirdPartyIds }) => [tenantId, thirdPartyIds]))
  const linking = features.includes('mfa') ? ['account_linking'] : []
  const needed = [
    { names: 'tenants', noun: 'tenant', present: new Set([PUBLIC_TENANT, ...listed.keys()]) },
    { names: 'roles', noun: 'role', present: new Set(roles) },
    { names: 'features', noun: 'feature', present: new Set([...features, ...linking]) },
  ] as const
  const tallies = needed.map((each) => ({ ...each, tally: createTally() }))
  const providers = createTally()
  const tenantsWithout = new Map<string, Set<string>>()
  return {
    add(needs: UserNeeds, line: number): void {
      for (const { names, present, tally } of tallies) {
        for (const name of needs[names]) if (!present.has(name)) tally.count(name, line)
      }
      for (const { tenantId, thirdPartyId } of needs.providers) {
        if (listed.get(tenantId)?.includes(thirdPartyId) !== false) continue
        providers.count(thirdPartyId, line)
        const without = tenantsWithout.get(thirdPartyId) ?? new Set()
        tenantsWithout.set(thirdPartyId, without.add(tenantId))
      }
    },
    findings: (): PreflightFinding[] => [
      ...tallies.flatMap(({ noun, tally }) =>
        tally.findings(`${noun}_missing`, 'fault', (name) => `The core lacks the ${noun} ${name}.`),
      ),
      // Only a notice, because the backend's own configuration may contain the provider.
      ...providers.findings('provider_missing', 'notice', (provider) => {
        const without = tenantsInWords([...(tenantsWithout.get(provider) ?? [])])
        return `The core lacks the provider ${provider} in ${without}; the backend may configure it.`
      }),
    ],
  }
}

/** Maximum number of tenants in one message. */
const MAX_TENANTS = 5

function tenantsInWords(tenants: readonly string[]): string {
  const named = tenants.slice(0, MAX_TENANTS).join(', ')
  if (tenants.length === 1) return `the tenant ${named}`
  const others = tenants.length - MAX_TENANTS
  return `the tenants ${named}${others > 0 ? ` and ${others} more` : ''}`
}

/** Above this number of kinds, records are grouped by the code of their first finding. */
const MAX_KINDS = 200
/** Maximum number of findings in one message. The report of the identity has all of them. */
const MAX_TEXTS = 3

/** Counts records by the kind of their findings, each with the message of its first record. */
function tallyRecords(code: PreflightFinding['code'], severity: PreflightFinding['severity']) {
  const tally = createTally()
  const messages = new Map<string, string>()
  return {
    add(findings: readonly UserFinding[], { line }: IndexedRecord): void {
      const [first] = findings
      if (first === undefined) return
      const all = [...new Set(findings.map(findingKind))].join(' ')
      const kind = messages.has(all) || messages.size < MAX_KINDS ? all : first.code
      if (tally.count(kind, line)) messages.set(kind, describeFindings(findings))
    },
    findings: () => tally.findings(code, severity, (kind) => messages.get(kind) ?? ''),
  }
}

function describeFindings(findings: readonly UserFinding[]): string {
  const texts = findings
    .slice(0, MAX_TEXTS)
    .map((each) => `${each.code} in ${each.field || 'the record'}: ${each.message}`)
  const others = findings.length - texts.length
  return [...texts, ...(others > 0 ? [`and ${others} more`] : [])].join('; ')
}

/** Leaves out list indexes, so that findings on one member of different list items are of one kind. */
const findingKind = ({ field, code }: UserFinding): string =>
  `${code} ${field.replaceAll(/\[\d+\]/g, '[]')}`
