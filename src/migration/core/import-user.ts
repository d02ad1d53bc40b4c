/** What a login method is of. The core imports no other recipe. */
export type RecipeId = 'emailpassword' | 'thirdparty' | 'passwordless'

/** A login method of a record, in the core's names. */
export interface ImportLoginMethod {
  readonly recipeId: RecipeId
  /** `["public"]` when absent. */
  readonly tenantIds?: readonly string[]
  readonly isVerified?: boolean
  readonly isPrimary?: boolean
  /** Milliseconds since the epoch; the time of the import when absent. */
  readonly timeJoinedInMSSinceEpoch?: number
  readonly email?: string
  readonly phoneNumber?: string
  readonly passwordHash?: string
  readonly hashingAlgorithm?: string
  readonly plainTextPassword?: string
  readonly thirdPartyId?: string
  readonly thirdPartyUserId?: string
}

/** A role of a record, in the tenants that are named; it must exist before. */
export interface ImportUserRole {
  readonly role: string
  readonly tenantIds: readonly string[]
}

/** A TOTP device of a record. The core needs a name for it, and the licence feature `mfa`. */
export interface ImportTotpDevice {
  readonly secretKey: string
  /** Seconds. */
  readonly period?: number
  readonly skew?: number
  readonly deviceName?: string
}

/** A user as the core imports it: what is staged, or imported directly. Holds secrets. */
export interface ImportUser {
  readonly externalUserId?: string
  readonly userMetadata?: Readonly<Record<string, unknown>>
  readonly userRoles?: readonly ImportUserRole[]
  readonly totpDevices?: readonly ImportTotpDevice[]
  readonly loginMethods: readonly ImportLoginMethod[]
}
