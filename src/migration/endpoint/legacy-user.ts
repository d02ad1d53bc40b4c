import { z } from 'zod'
import { optionsObject } from '../../base/options.js'
import type { ImportLoginMethod, ImportTotpDevice, ImportUserRole } from '../core/import-user.js'
import { faultsOf } from './endpoint-result.js'
import type { LegacyIdentity } from './migration-request.js'

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

/** Members of type `unknown` are checked later by `validateUser`. */
export interface ParsedLogin extends LegacyIdentity {
  readonly email?: unknown
  readonly phoneNumber?: unknown
  readonly passwordHash?: unknown
  readonly hashingAlgorithm?: unknown
  readonly plainTextPassword?: unknown
  readonly thirdPartyUserId?: unknown
  readonly isVerified?: unknown
  readonly isPrimary?: unknown
  readonly timeJoinedInMSSinceEpoch?: unknown
}

export interface ParsedLegacyUser {
  readonly organizationIds?: readonly string[] | undefined
  readonly identities: readonly ParsedLogin[]
  readonly userMetadata?: unknown
  readonly userRoles?: readonly { readonly tenantIds: readonly string[] }[] | undefined
  readonly totpDevices?: unknown
}

/** A parsed record, or the paths of its errors. */
export type LegacyUserReading =
  | { readonly ok: true; readonly record: ParsedLegacyUser }
  | { readonly ok: false; readonly faults: readonly string[] }

/** Parses a JSON copy of the value, so that nothing can change between the checks and the request. */
export function readLegacyUser(value: unknown): LegacyUserReading {
  const { data, error } = legacyUser.safeParse(jsonOf(value))
  if (data !== undefined) return { ok: true, record: data }
  const findings = error.issues.map(({ code, path }) => ({ field: z.core.toDotPath(path), code }))
  return { ok: false, faults: faultsOf(findings) }
}

function jsonOf(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value))
  } catch {
    return undefined
  }
}
