import { lowerCased, ONLY_PUBLIC, PUBLIC_TENANT } from './stored-form.js'
import type { FindingCollector } from './user-finding.js'

/** Existing names. A set is faster than a list. */
export type Names = ReadonlySet<string> | readonly string[]

/** The tenants, roles and features of the core. Omitted members are not checked. */
export interface UserContext {
  /** Ids of the app's tenants. `public` always exists. */
  readonly tenants?: Names | undefined
  /** Names of roles. */
  readonly roles?: Names | undefined
  /** Features of the licence, such as `account_linking`. */
  readonly features?: Names | undefined
}

export type Feature = 'account_linking' | 'multi_tenancy' | 'mfa'

export function has(names: Names, name: string): boolean {
  return 'has' in names ? names.has(name) : names.includes(name)
}

/** Whether a feature is known to be off. The feature `mfa` includes `account_linking`. */
export function lacks({ features }: UserContext, feature: Feature): boolean {
  if (features === undefined || has(features, feature)) return false
  return feature !== 'account_linking' || !has(features, 'mfa')
}

/** @throws TypeError if a member is neither a list nor a set. */
export function checkContext(context: UserContext): void {
  for (const name of ['tenants', 'roles', 'features'] as const) {
    const names = context[name]
    if (names === undefined || Array.isArray(names) || names instanceof Set) continue
    throw new TypeError(`validateUser: ${name} must be a list or a set of names`)
  }
}

interface TenantField {
  readonly field: string
  /** The end of the message on an unknown tenant. */
  readonly suffix: string
  readonly findings: FindingCollector
}

/** Returns the valid tenants of a list, in the form that the core stores. */
export function readTenantIds(
  given: readonly string[] | undefined,
  { field, suffix, findings }: TenantField,
  context: UserContext,
): readonly string[] {
  if (given === undefined) return ONLY_PUBLIC
  const tenantIds: string[] = []
  for (const [index, tenantId] of given.entries()) {
    const place = `${field}.tenantIds[${index}]`
    if (tenantId === PUBLIC_TENANT) tenantIds.push(tenantId)
    else if (lacks(context, 'multi_tenancy')) {
      findings.refuse('feature_missing', place, NO_MULTITENANCY)
    } else if (isUnknown(lowerCased(tenantId), context)) {
      findings.refuse('tenant_missing', place, `Invalid tenantId: ${tenantId}${suffix}`)
    } else tenantIds.push(lowerCased(tenantId))
  }
  return tenantIds
}

const NO_MULTITENANCY = 'Multitenancy must be enabled before importing users to a different tenant.'

/** Expects the stored form: the core stores `Public` as `public`, but requires multitenancy for that spelling. */
const isUnknown = (tenantId: string, { tenants }: UserContext): boolean =>
  tenants !== undefined && tenantId !== PUBLIC_TENANT && !has(tenants, tenantId)
