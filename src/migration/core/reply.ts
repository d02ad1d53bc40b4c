import type { ImportLoginMethod, ImportTotpDevice, ImportUser, RecipeId } from './import-user.js'

/** A user that a core from 10.1.1 on says it has staged. */
export interface StagedUser {
  /** The external id; the row's id when there is none. */
  readonly userId: string
  readonly loginMethods: readonly {
    readonly recipeId: RecipeId
    /** The id in the core, which the account will keep. */
    readonly userId: string
    readonly tenants: readonly string[]
    readonly email?: string | null
    readonly phoneNumber?: string | null
    readonly thirdpartyId?: string
    readonly thirdpartyUserId?: string
  }[]
}

/** Where a staged row stands: not picked up yet, being imported, or failed. */
export type RowStatus = 'NEW' | 'PROCESSING' | 'FAILED'

/** A row of the staging list, without its secrets. */
export interface StagedRow extends Omit<ImportUser, 'loginMethods' | 'totpDevices'> {
  readonly id: string
  readonly status: RowStatus
  readonly errorMessage?: string
  readonly primaryUserId?: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  readonly updatedAt: number
  readonly loginMethods: readonly (Omit<ImportLoginMethod, 'passwordHash' | 'plainTextPassword'> & {
    readonly superTokensUserId?: string
  })[]
  readonly totpDevices?: readonly Omit<ImportTotpDevice, 'secretKey'>[]
}

/** A login method of an account. */
export interface CoreLoginMethod {
  readonly recipeId: string
  /** The external id for the primary method of a mapped user, else the core's. */
  readonly recipeUserId: string
  readonly tenantIds: readonly string[]
  readonly verified: boolean
  /** Milliseconds since the epoch. */
  readonly timeJoined: number
  readonly email?: string
  readonly phoneNumber?: string
  readonly thirdParty?: { readonly id: string; readonly userId: string }
}

/** An account, as the core shows it. */
export interface CoreUser {
  /** The external id where one is mapped. */
  readonly id: string
  readonly isPrimaryUser: boolean
  readonly tenantIds: readonly string[]
  /** That of the oldest method, in milliseconds since the epoch. */
  readonly timeJoined: number
  readonly emails: readonly string[]
  readonly phoneNumbers: readonly string[]
  readonly thirdParty: readonly { readonly id: string; readonly userId: string }[]
  readonly loginMethods: readonly CoreLoginMethod[]
}

/** A TOTP device of an account. The core shows no key. */
export interface CoreTotpDevice {
  readonly name: string
  /** Seconds. */
  readonly period: number
  readonly skew: number
  readonly verified: boolean
}

/** A tenant of the core. */
export interface CoreTenant {
  readonly tenantId: string
  /** Ids of the tenant's third-party providers, where the core tells them. */
  readonly thirdPartyIds?: readonly string[]
}
