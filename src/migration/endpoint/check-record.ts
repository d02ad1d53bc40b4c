import type { ImportUser } from '../core/import-user.js'
import { coreTenantId } from '../record-validation/tenant-ids.js'
import type { UserWarningCode } from '../record-validation/user-finding.js'
import { validateUser } from '../record-validation/validate-user.js'
import type { Allowlist } from './allowlist.js'
import { faultsOf, pass, refused, type Step } from './endpoint-result.js'
import { type ParsedLegacyUser, type ParsedLogin, readLegacyUser } from './legacy-user.js'
import type { LegacyIdentity, MigrationRequest } from './migration-request.js'

/** Checks the request against the allowlist, before the user is loaded. */
export function judgeRequest(
  request: MigrationRequest,
  allowed: Allowlist,
): Step<MigrationRequest> {
  const { organizationId, identities } = request
  if (organizationId !== undefined && !allowed.hasOrganization(organizationId)) {
    return refused('organization_not_allowed')
  }
  return identities.every(({ provider, connection }) => allowed.recipeOf(provider, connection))
    ? pass(request)
    : refused('connection_not_allowed')
}

/**
 * Builds the user from the record and the allowlist. The record must contain everything that the request
 * names, and the whole record must be allowed. Otherwise the holder of a token could add a login of their
 * own.
 */
export function judgeRecord(
  found: unknown,
  { request, allowed }: { readonly request: MigrationRequest; readonly allowed: Allowlist },
  accepted: ReadonlySet<UserWarningCode>,
): Step<ImportUser> {
  if (found === undefined || found === null) return refused('user_unknown')
  const reading = readLegacyUser(found)
  if (!reading.ok) return refused('record_invalid', { faults: reading.faults })
  const { record } = reading
  if (!holdsAllOf(request, record)) return refused('record_differs')
  const built = userOf(request.externalUserId, record, allowed)
  if (built === undefined) return refused('record_not_allowed')
  const validated = validateUser(built)
  const warnings = validated.warnings.filter(({ code }) => !accepted.has(code))
  const findings = validated.ok ? warnings : [...validated.errors, ...warnings]
  if (!validated.ok || findings.length > 0) {
    return refused('record_invalid', { faults: faultsOf(findings) })
  }
  return pass(validated.user)
}

function holdsAllOf(request: MigrationRequest, record: ParsedLegacyUser): boolean {
  const { organizationId, identities } = request
  if (organizationId !== undefined && !record.organizationIds?.includes(organizationId)) {
    return false
  }
  return identities.every((asked) => record.identities.some((known) => isSame(asked, known)))
}

const isSame = (one: LegacyIdentity, other: LegacyIdentity): boolean =>
  one.provider === other.provider &&
  one.connection === other.connection &&
  one.userId === other.userId

/** Builds the user in the form of the core. It is not validated yet. */
function userOf(
  externalUserId: string,
  { organizationIds = [], identities, ...others }: ParsedLegacyUser,
  allowed: Allowlist,
): Record<string, unknown> | undefined {
  const tenantIds = allowed.tenantsOf(organizationIds)
  if (tenantIds === undefined) return undefined
  const loginMethods = identities.flatMap((login) => methodOf(login, tenantIds, allowed) ?? [])
  if (loginMethods.length < identities.length) return undefined
  const roleTenants = others.userRoles?.flatMap((role) => role.tenantIds) ?? []
  if (!roleTenants.every((id) => tenantIds.includes(coreTenantId(id)))) return undefined
  return { externalUserId, loginMethods, ...others }
}

function methodOf(
  { provider, connection, userId, ...login }: ParsedLogin,
  tenantIds: readonly string[],
  allowed: Allowlist,
): Record<string, unknown> | undefined {
  const as = allowed.recipeOf(provider, connection)
  if (as === undefined) return undefined
  const { recipeId, thirdPartyId } = as
  const pair = thirdPartyId === undefined ? {} : { thirdPartyId, thirdPartyUserId: userId }
  return { ...pair, ...login, recipeId, tenantIds }
}
