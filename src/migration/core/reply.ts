import type { ImportLoginMethod, ImportTotpDevice, ImportUser, RecipeId } from './import-user.js'

/** A user that a core from 10.1.1 on says it has staged. */
export interface StagedUser {
  /** The external id; the row's id when there is none. */
  readonly userId: string
  /** Its login methods, as the core has staged them. */
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
  /** The row's id: what `deleteRows` takes. */
  readonly id: string
  /** Where it stands. */
  readonly status: RowStatus
  /** Why it failed, in the core's words. */
  readonly errorMessage?: string
  /** The id in the core that the account will have. */
  readonly primaryUserId?: string
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** Milliseconds since the epoch. */
  readonly updatedAt: number
  /** The login methods, without passwords. */
  readonly loginMethods: readonly (Omit<ImportLoginMethod, 'passwordHash' | 'plainTextPassword'> & {
    readonly superTokensUserId?: string
  })[]
  /** The TOTP devices, without keys. */
  readonly totpDevices?: readonly Omit<ImportTotpDevice, 'secretKey'>[]
}

/** A login method of an account. */
export interface CoreLoginMethod {
  /** Such as `emailpassword`. */
  readonly recipeId: string
  /** The external id for the primary method of a mapped user, else the core's. */
  readonly recipeUserId: string
  /** The tenants in which it works. */
  readonly tenantIds: readonly string[]
  /** Whether its e-mail address or phone number is verified. */
  readonly verified: boolean
  /** Milliseconds since the epoch. */
  readonly timeJoined: number
  /** Its e-mail address, where it has one. */
  readonly email?: string
  /** Its phone number, where it has one. */
  readonly phoneNumber?: string
  /** The provider's id in the core, and the user's id there. */
  readonly thirdParty?: { readonly id: string; readonly userId: string }
}

/** An account, as the core shows it. */
export interface CoreUser {
  /** The external id where one is mapped. */
  readonly id: string
  /** Whether login methods may be linked to it. */
  readonly isPrimaryUser: boolean
  /** The tenants of all login methods. */
  readonly tenantIds: readonly string[]
  /** That of the oldest method, in milliseconds since the epoch. */
  readonly timeJoined: number
  /** The e-mail addresses of all login methods. */
  readonly emails: readonly string[]
  /** The phone numbers of all login methods. */
  readonly phoneNumbers: readonly string[]
  /** The third-party logins of all login methods. */
  readonly thirdParty: readonly { readonly id: string; readonly userId: string }[]
  /** Its login methods. */
  readonly loginMethods: readonly CoreLoginMethod[]
}

/** A TOTP device of an account. The core shows no key. */
export interface CoreTotpDevice {
  /** Its name, one of its kind at the user. */
  readonly name: string
  /** Seconds. */
  readonly period: number
  /** How many periods a code may be early or late. */
  readonly skew: number
  /** Whether a code of it was accepted once. */
  readonly verified: boolean
}

/** A tenant of the core. */
export interface CoreTenant {
  /** Its id, such as `public`. */
  readonly tenantId: string
  /** Ids of the tenant's third-party providers, where the core tells them. */
  readonly thirdPartyIds?: readonly string[]
}
