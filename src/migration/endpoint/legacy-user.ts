import { z } from 'zod'
import { optionsObject } from '../../base/options.js'
import type {
  ImportLoginMethod,
  ImportTotpDevice,
  ImportUser,
  ImportUserRole,
} from '../core/import-user.js'
import { coreTenantId } from '../record-validation/normalise.js'
import type { UserWarningCode } from '../record-validation/user-finding.js'
import { validateUser } from '../record-validation/validate-user.js'
import { faultsOf, refused } from './endpoint-result.js'
import type { Allowlist } from './issuer-options.js'
import type { LegacyIdentity, MigrationRequest } from './migration-request.js'

/** A login in the legacy store. The allowlist determines its tenants, recipe and provider. */
export interface LegacyLogin
  extends LegacyIdentity,
    Omit<ImportLoginMethod, 'recipeId' | 'tenantIds' | 'thirdPartyId'> {}

/** A legacy user from the backend's own store. Contains secrets. */
export interface LegacyUser {
  /** Organizations of the user. Default: none. */
  readonly organizationIds?: readonly string[] | undefined
  /** All logins of the user. `thirdPartyUserId` is needed if it differs from the `userId` of the identity. */
  readonly identities: readonly LegacyLogin[]
  /** The metadata of the account. Default: none. */
  readonly userMetadata?: Readonly<Record<string, unknown>> | undefined
  /** Roles, only in tenants of the user's organizations. Default: none. */
  readonly userRoles?: readonly ImportUserRole[] | undefined
  /** TOTP devices of the user. Default: none. */
  readonly totpDevices?: readonly ImportTotpDevice[] | undefined
}

/** The argument of `loadUser`. */
export interface LegacyUserQuery {
  /** The name of the issuer whose token the request has. */
  readonly issuer: string
  /** The user that the request names. */
  readonly externalUserId: string
  /** The organization that the request names. */
  readonly organizationId?: string
  /** The logins that the request names. */
  readonly identities: readonly LegacyIdentity[]
  /** Aborts when the request times out. */
  readonly signal: AbortSignal
}

/** Loads a user from the backend's own store. Returns `undefined` or `null` if there is none. */
export type LoadUser = (
  query: LegacyUserQuery,
) => LegacyUser | null | undefined | Promise<LegacyUser | null | undefined>

const id = z.string().min(1)
/** Checked later by `validateUser`. */
const any = z.unknown().optional()

const login = optionsObject({
  provider: id,
  connection: id,
  userId: id,
  email: any,
  phoneNumber: any,
  passwordHash: any,
  hashingAlgorithm: any,
  plainTextPassword: any,
  thirdPartyUserId: any,
  isVerified: any,
  isPrimary: any,
  timeJoinedInMSSinceEpoch: any,
})

const role = z.looseObject({ tenantIds: z.array(z.string()) })

const legacyUser = optionsObject({
  organizationIds: z.array(id).optional(),
  identities: z.array(login).min(1),
  userMetadata: any,
  userRoles: z.array(role).optional(),
  totpDevices: any,
})

type ParsedLegacyUser = z.output<typeof legacyUser>

/**
 * Builds the user from the record and the allowlist. The record must contain everything that the request
 * names, and the whole record must be allowed. Otherwise the holder of a token could add a login of their
 * own.
 *
 * @throws RequestEnded if the user must not be imported.
 */
export function judgeRecord(
  found: unknown,
  { asked, allowed }: { readonly asked: MigrationRequest; readonly allowed: Allowlist },
  accepted: ReadonlySet<UserWarningCode>,
): ImportUser {
  if (found === undefined || found === null) throw refused('user_unknown')
  const { data: record, error } = legacyUser.safeParse(copyAsJson(found))
  if (record === undefined) throw refused('record_invalid', { faults: faultsOf(pathsOf(error)) })
  if (!holdsAllOf(asked, record)) throw refused('record_differs')
  const built = userOf(asked.externalUserId, record, allowed)
  if (built === undefined) throw refused('record_not_allowed')
  const validated = validateUser(built)
  const warnings = validated.warnings.filter(({ code }) => !accepted.has(code))
  const findings = validated.ok ? warnings : [...validated.errors, ...warnings]
  if (!validated.ok || findings.length > 0) {
    throw refused('record_invalid', { faults: faultsOf(findings) })
  }
  return validated.user
}

/** Returns a JSON copy, so that nobody can change the user between the checks and the call of the core. */
function copyAsJson(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value))
  } catch {
    return undefined
  }
}

const pathsOf = ({ issues }: z.core.$ZodError): { field: string; code: string }[] =>
  issues.map(({ code, path }) => ({ field: z.core.toDotPath(path), code }))

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

/** Builds the unvalidated user in the form of the core. Returns `undefined` if a part of it is not allowed. */
function userOf(
  externalUserId: string,
  { organizationIds = [], identities, ...others }: ParsedLegacyUser,
  allowed: Allowlist,
): Record<string, unknown> | undefined {
  const tenantIds = allowed.tenantsOf(organizationIds)
  if (tenantIds === undefined) return undefined
  const loginMethods = identities.flatMap((each) => methodOf(each, tenantIds, allowed) ?? [])
  if (loginMethods.length < identities.length) return undefined
  const roleTenants = others.userRoles?.flatMap((each) => each.tenantIds) ?? []
  if (!roleTenants.every((each) => tenantIds.includes(coreTenantId(each)))) return undefined
  return { externalUserId, loginMethods, ...others }
}

function methodOf(
  { provider, connection, userId, ...others }: ParsedLegacyUser['identities'][number],
  tenantIds: readonly string[],
  allowed: Allowlist,
): Record<string, unknown> | undefined {
  const as = allowed.recipeOf(provider, connection)
  if (as === undefined) return undefined
  const { recipeId, thirdPartyId } = as
  const thirdParty = thirdPartyId === undefined ? {} : { thirdPartyId, thirdPartyUserId: userId }
  return { ...thirdParty, ...others, recipeId, tenantIds }
}
