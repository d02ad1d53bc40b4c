import { z } from 'zod'
import type { ImportUser } from '../core/import-user.js'
import { coreTenantIds } from '../record-validation/normalise.js'
import type { UserWarningCode } from '../record-validation/user-finding.js'
import { validateUser } from '../record-validation/validate-user.js'
import { type Issuer, isSameConnection } from './endpoint-options.js'
import type { LegacyIdentity, MigrationRequest } from './migration-request.js'
import { RequestEnded, recordInvalid } from './request-ended.js'

const id = z.string().min(1)

/** What only the issuer's options decide. */
const decidedByOptions = z.never().optional()

/** The members that are looked at here. `validateUser` checks all others. */
const legacyUser = z.looseObject({
  organizationIds: z.array(id).optional(),
  identities: z
    .array(
      z.looseObject({
        provider: id,
        connection: id,
        userId: id,
        recipeId: decidedByOptions,
        thirdPartyId: decidedByOptions,
        tenantIds: decidedByOptions,
      }),
    )
    .min(1),
  userRoles: z.array(z.looseObject({ tenantIds: z.array(z.string()) })).optional(),
})

type Parsed = z.output<typeof legacyUser>

/**
 * Makes the user to import of the record from the backend's own store. All that the request names must be in the
 * record, and all that the record names must be allowed. Otherwise the holder of a token could add a login of their
 * own.
 *
 * @throws RequestEnded if the user must not be imported.
 */
export function userToImport(
  found: unknown,
  asked: MigrationRequest,
  { issuer, acceptWarnings }: { issuer: Issuer; acceptWarnings: readonly UserWarningCode[] },
): ImportUser {
  if (found === undefined || found === null) throw new RequestEnded('user_unknown')
  const { data: record, error } = legacyUser.safeParse(asJson(found))
  if (record === undefined) {
    throw recordInvalid(
      error.issues.map(({ code, path }) => ({ field: z.core.toDotPath(path), code })),
    )
  }
  if (!hasAllOf(asked, record)) throw new RequestEnded('record_differs')
  const validated = validateUser(allowedUser(asked.externalUserId, record, issuer))
  const warnings = validated.warnings.filter(({ code }) => !acceptWarnings.includes(code))
  if (validated.ok && warnings.length === 0) return validated.user
  throw recordInvalid(validated.ok ? warnings : [...validated.errors, ...warnings])
}

/** The record as JSON would hold it, without members that are `undefined`. */
function asJson(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value))
  } catch {
    return undefined
  }
}

function hasAllOf({ organizationId, identities }: MigrationRequest, record: Parsed): boolean {
  const isKnown = organizationId === undefined || record.organizationIds?.includes(organizationId)
  return isKnown === true && identities.every((asked) => record.identities.some(isSameAs(asked)))
}

const isSameAs = (one: LegacyIdentity) => (other: LegacyIdentity) =>
  isSameConnection(one)(other) && one.userId === other.userId

/**
 * Makes the unvalidated user in the form of the core.
 *
 * @throws RequestEnded if a part of the record is not allowed.
 */
function allowedUser(externalUserId: string, record: Parsed, issuer: Issuer): unknown {
  const { organizationIds = [], identities, ...others } = record
  const tenantIds = tenantsOf(organizationIds, issuer)
  const roleTenantIds = others.userRoles?.flatMap((role) => role.tenantIds) ?? []
  if (!coreTenantIds(roleTenantIds).every((each) => tenantIds.includes(each))) throw notAllowed()
  const loginMethods = identities.map(({ provider, connection, userId, ...login }) => {
    const as = issuer.connections.find(isSameConnection({ provider, connection }))?.as
    if (as === undefined) throw notAllowed()
    const { recipeId, thirdPartyId } = as
    const thirdParty = thirdPartyId === undefined ? {} : { thirdPartyId, thirdPartyUserId: userId }
    return { ...thirdParty, ...login, recipeId, tenantIds }
  })
  return { ...others, externalUserId, loginMethods }
}

const notAllowed = () => new RequestEnded('record_not_allowed')

/** @throws RequestEnded if one of the organizations is not allowed, or users without any are not. */
function tenantsOf(
  organizationIds: readonly string[],
  { organizations = {}, withoutOrganization = [] }: Issuer,
): readonly string[] {
  const lists = organizationIds.map((name) =>
    Object.hasOwn(organizations, name) ? (organizations[name] ?? []) : [],
  )
  if (organizationIds.length === 0) lists.push(withoutOrganization)
  if (lists.some((list) => list.length === 0)) throw notAllowed()
  return [...new Set(lists.flat())]
}
