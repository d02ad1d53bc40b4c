import type { JsonObject } from '../json-input.js'
import type { ImportRules } from './import-rules.js'

/** A user as the core stores it; its members stand in the core's order. */
export interface ImportedUser {
  /** That of the primary login method, and of the row. */
  readonly id: string
  readonly externalUserId?: string | undefined
  readonly userMetadata?: JsonObject | undefined
  readonly userRoles?: readonly UserRole[] | undefined
  readonly totpDevices?: readonly TotpDevice[] | undefined
  readonly loginMethods: readonly LoginMethod[]
}

/** A login method, normalised; its members stand in the order in which the core stores them. */
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
  /** Seconds. */
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
  /** Of a row, whose login methods have their ids; else each gets one. */
  readonly areStored: boolean
  /** Those of one request, or of one chunk of the job: grows as users are read. */
  readonly externalIds: Set<string>
}

/** What an import depends on besides the tables. */
export interface ImportSettings {
  readonly rules: ImportRules
  readonly features: ReadonlySet<Feature>
  readonly nowMs: number
}
