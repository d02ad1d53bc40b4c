/** The recipe of a login method. The core imports no other recipe. */
export type RecipeId = 'emailpassword' | 'thirdparty' | 'passwordless'

/** A login method of a record, with the core's names. */
export interface ImportLoginMethod {
  /** Its recipe. */
  readonly recipeId: RecipeId
  /** The tenants in which it works. Default: `["public"]`. */
  readonly tenantIds?: readonly string[]
  /** Whether its e-mail address or phone number is verified. */
  readonly isVerified?: boolean
  /** Whether this is the primary login method. */
  readonly isPrimary?: boolean
  /** Milliseconds since the epoch. Default: the time of the import. */
  readonly timeJoinedInMSSinceEpoch?: number
  /** Required with `emailpassword` and `thirdparty`. With `passwordless`, this or a phone number is required. */
  readonly email?: string
  /** Only with `passwordless`. */
  readonly phoneNumber?: string
  /** With `emailpassword`, together with `hashingAlgorithm`. */
  readonly passwordHash?: string
  /** The algorithm of the hash, such as `bcrypt`. */
  readonly hashingAlgorithm?: string
  /** With `emailpassword`, instead of a hash. */
  readonly plainTextPassword?: string
  /** With `thirdparty`: the provider's id in the core. */
  readonly thirdPartyId?: string
  /** With `thirdparty`: the user's id at the provider. */
  readonly thirdPartyUserId?: string
}

/** A role of a record. The core must already have the role. */
export interface ImportUserRole {
  /** The name of the role. */
  readonly role: string
  /** The tenants in which the user has the role. */
  readonly tenantIds: readonly string[]
}

/** A TOTP device of a record. The core requires a name for it, and the licence feature `mfa`. */
export interface ImportTotpDevice {
  /** The secret key. */
  readonly secretKey: string
  /** Validity of a code in seconds. Default: 30. */
  readonly period?: number
  /** Number of periods by which a code may be early or late. Default: 1. */
  readonly skew?: number
  /** The name of the device, unique for the user. */
  readonly deviceName?: string
}

/** A user as the core imports it, staged or directly. Contains secrets. */
export interface ImportUser {
  /** The id in the legacy service, by which each account is identified. */
  readonly externalUserId?: string
  /** Any JSON object. It must not contain credentials. */
  readonly userMetadata?: Readonly<Record<string, unknown>>
  /** Roles of the user. The core must already have them. */
  readonly userRoles?: readonly ImportUserRole[]
  /** TOTP devices of the user. */
  readonly totpDevices?: readonly ImportTotpDevice[]
  /** At least one login method. Several require account linking. */
  readonly loginMethods: readonly ImportLoginMethod[]
}
