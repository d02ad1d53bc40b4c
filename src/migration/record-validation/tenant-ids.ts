import type { Findings } from './collect-findings.js'
import { lowerCased } from './core-trim.js'
import { has, lacks, type UserContext } from './validation-context.js'

/** The tenant that every app has. */
export const PUBLIC_TENANT = 'public'

const ONLY_PUBLIC: readonly string[] = [PUBLIC_TENANT]

/** Returns a tenant id in the form that the core stores. Any spelling but exactly `public` needs multitenancy. */
export const coreTenantId = (tenantId: string): string =>
  tenantId === PUBLIC_TENANT ? tenantId : lowerCased(tenantId)

export const coreTenantIds = (tenantIds: readonly string[] | undefined): readonly string[] =>
  tenantIds?.map(coreTenantId) ?? ONLY_PUBLIC

interface Place {
  readonly field: string
  /** The end of the message on an unknown tenant. */
  readonly suffix: string
  readonly findings: Findings
}

/** Returns the valid tenants of a list, in the form that the core stores. */
export function readTenantIds(
  given: readonly string[] | undefined,
  { field, suffix, findings }: Place,
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

const isUnknown = (tenantId: string, { tenants }: UserContext): boolean =>
  tenants !== undefined && tenantId !== PUBLIC_TENANT && !has(tenants, tenantId)
