import type { ImportLoginMethod, ImportTotpDevice, ImportUser, RecipeId } from './import-user.js'

/** A staged user, as a core of version 10.1.1 or later returns it. */
export interface StagedUser {
  /** The external id, or the row's id if there is none. */
  readonly userId: string
  /** The login methods as the core staged them. */
  readonly loginMethods: readonly {
    readonly recipeId: RecipeId
    /** The core's id, which the account will have. */
    readonly userId: string
    readonly tenants: readonly string[]
    readonly email?: string | null
    readonly phoneNumber?: string | null
    readonly thirdpartyId?: string
    readonly thirdpartyUserId?: string
  }[]
}

/** The status of a staged row: not picked up yet, being imported, or failed. */
export type RowStatus = 'NEW' | 'PROCESSING' | 'FAILED'

/** A row of the staging list, without its secrets. */
export interface StagedRow extends Omit<ImportUser, 'loginMethods' | 'totpDevices'> {
  /** The row's id, for `deleteRows`. */
  readonly id: string
  /** The status of the row. */
  readonly status: RowStatus
  /** Why the row failed, in the words of the core. */
  readonly errorMessage?: string
  /** The core's id that the account will have. */
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
  /** The recipe, such as `emailpassword`. */
  readonly recipeId: string
  /** The external id for the primary method of a mapped user, otherwise the core's id. */
  readonly recipeUserId: string
  /** The tenants in which it works. */
  readonly tenantIds: readonly string[]
  /** Whether its e-mail address or phone number is verified. */
  readonly verified: boolean
  /** Milliseconds since the epoch. */
  readonly timeJoined: number
  /** Its e-mail address, if it has one. */
  readonly email?: string
  /** Its phone number, if it has one. */
  readonly phoneNumber?: string
  /** The provider's id in the core, and the user's id there. */
  readonly thirdParty?: { readonly id: string; readonly userId: string }
}

/** An account as the core returns it. */
export interface CoreUser {
  /** The external id if one is mapped, otherwise the core's id. */
  readonly id: string
  /** Whether login methods may be linked to it. */
  readonly isPrimaryUser: boolean
  /** The tenants of all login methods. */
  readonly tenantIds: readonly string[]
  /** `timeJoined` of the oldest login method, in milliseconds since the epoch. */
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

/** A TOTP device of an account. The core does not return its key. */
export interface CoreTotpDevice {
  /** The name of the device, unique for the user. */
  readonly name: string
  /** Validity of a code in seconds. */
  readonly period: number
  /** Number of periods by which a code may be early or late. */
  readonly skew: number
  /** Whether a code of the device has been accepted. */
  readonly verified: boolean
}

/** A tenant of the core. */
export interface CoreTenant {
  /** Its id, such as `public`. */
  readonly tenantId: string
  /** Ids of the tenant's third-party providers, if the core returns them. */
  readonly thirdPartyIds?: readonly string[]
}
