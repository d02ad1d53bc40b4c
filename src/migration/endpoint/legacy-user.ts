import { z } from 'zod'
import { optionsObject } from '../../base/options.js'
import type { ImportLoginMethod, ImportTotpDevice, ImportUserRole } from '../core/import-user.js'
import { faultsOf } from './endpoint-result.js'
import type { LegacyIdentity } from './migration-request.js'

/** A login as the legacy store knows it. Tenants, recipe and provider are the allowlist's to say. */
export interface LegacyLogin
  extends LegacyIdentity,
    Omit<ImportLoginMethod, 'recipeId' | 'tenantIds' | 'thirdPartyId'> {}

/** What the backend itself knows of a legacy user. Holds secrets. */
export interface LegacyUser {
  /** Default: none. */
  readonly organizationIds?: readonly string[] | undefined
  /** All logins of the user; with `thirdPartyUserId` where that is not the identity's `userId`. */
  readonly identities: readonly LegacyLogin[]
  /** What becomes the metadata of the account. Default: none. */
  readonly userMetadata?: Readonly<Record<string, unknown>> | undefined
  /** With tenants of the user's organizations alone. */
  readonly userRoles?: readonly ImportUserRole[] | undefined
  /** Default: none. */
  readonly totpDevices?: readonly ImportTotpDevice[] | undefined
}

/** Which user is asked for. */
export interface LegacyUserQuery {
  /** The name of the issuer whose token the request had. */
  readonly issuer: string
  /** Whom the request names. */
  readonly externalUserId: string
  /** The organization that the request names. */
  readonly organizationId?: string
  /** The logins that the request names. */
  readonly identities: readonly LegacyIdentity[]
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal
}

/** Reads a user from the backend's own store; `undefined` or `null` when there is none. */
export type LoadUser = (
  query: LegacyUserQuery,
) => LegacyUser | null | undefined | Promise<LegacyUser | null | undefined>

const id = z.string().min(1)
/** What a user of the core may be made of is for the core's rules to say. */
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

/** Of the members that are `unknown` the core's rules say what they may be. */
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

/** A record of the right form, or the paths where it is not. */
export type LegacyUserReading =
  | { readonly ok: true; readonly record: ParsedLegacyUser }
  | { readonly ok: false; readonly faults: readonly string[] }

/** Takes what JSON keeps of a value: so nothing that is judged here can change before it is sent. */
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
