import type { JsonObject } from '../json-input.js'
import type { ImportRules } from './import-rules.js'

/** A user as the core stores it, with the members in the core's order. */
export interface ImportedUser {
  /** The id of the primary login method, and of the row. */
  readonly id: string
  readonly externalUserId?: string | undefined
  readonly userMetadata?: JsonObject | undefined
  readonly userRoles?: readonly UserRole[] | undefined
  readonly totpDevices?: readonly TotpDevice[] | undefined
  readonly loginMethods: readonly LoginMethod[]
}

/** A login method, normalised, with the members in the order in which the core stores them. */
export interface LoginMethod {
  readonly tenantIds: readonly string[]
  readonly isVerified: boolean
  readonly isPrimary: boolean
  readonly timeJoinedInMSSinceEpoch: number
  readonly recipeId: string
  readonly email?: string | undefined
  readonly passwordHash?: string | undefined
  readonly hashingAlgorithm?: string | undefined
  readonly plainTextPassword?: string | undefined
  readonly thirdPartyId?: string | undefined
  readonly thirdPartyUserId?: string | undefined
  readonly phoneNumber?: string | undefined
  /** The id in the core. */
  readonly superTokensUserId: string
}

export interface UserRole {
  readonly role: string
  readonly tenantIds: readonly string[]
}

export interface TotpDevice {
  readonly secretKey: string
  /** In seconds. */
  readonly period: number
  readonly skew: number
  readonly deviceName?: string | undefined
}

/** A feature of the licence, in the core's spelling. */
export type Feature = 'account_linking' | 'multi_tenancy' | 'mfa'

export interface ReadContext extends ImportSettings {
  readonly tenants: ReadonlySet<string>
  readonly roles: ReadonlySet<string>
  readonly hasFirebaseSignerKey: boolean
  /** Whether the user comes from a row, whose login methods have ids; otherwise each gets a new one. */
  readonly areStored: boolean
  /** The ids of one request, or of one chunk of the job; grows as users are read. */
  readonly externalIds: Set<string>
}

/** The settings of an import, besides the tables. */
export interface ImportSettings {
  readonly rules: ImportRules
  readonly features: ReadonlySet<Feature>
  readonly nowMs: number
}
