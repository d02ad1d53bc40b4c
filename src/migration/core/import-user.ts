/** What a login method is of. The core imports no other recipe. */
export type RecipeId = 'emailpassword' | 'thirdparty' | 'passwordless'

/** A login method of a record, in the core's names. */
export interface ImportLoginMethod {
  /** What it is a login of. */
  readonly recipeId: RecipeId
  /** `["public"]` when absent. */
  readonly tenantIds?: readonly string[]
  /** Whether its e-mail address or phone number is verified. */
  readonly isVerified?: boolean
  /** Whether this is the primary login method. */
  readonly isPrimary?: boolean
  /** Milliseconds since the epoch; the time of the import when absent. */
  readonly timeJoinedInMSSinceEpoch?: number
  /** With `emailpassword` and `thirdparty`; with `passwordless`, this or a phone number. */
  readonly email?: string
  /** With `passwordless`. */
  readonly phoneNumber?: string
  /** With `emailpassword`, beside `hashingAlgorithm`. */
  readonly passwordHash?: string
  /** What made the hash, such as `bcrypt`. */
  readonly hashingAlgorithm?: string
  /** With `emailpassword`, instead of a hash. */
  readonly plainTextPassword?: string
  /** With `thirdparty`: the provider's id in the core. */
  readonly thirdPartyId?: string
  /** With `thirdparty`: the user's id at the provider. */
  readonly thirdPartyUserId?: string
}

/** A role of a record, in the tenants that are named; it must exist before. */
export interface ImportUserRole {
  /** Its name. */
  readonly role: string
  /** The tenants in which the user has it. */
  readonly tenantIds: readonly string[]
}

/** A TOTP device of a record. The core needs a name for it, and the licence feature `mfa`. */
export interface ImportTotpDevice {
  /** The key, a secret. */
  readonly secretKey: string
  /** Seconds. */
  readonly period?: number
  /** How many periods a code may be early or late. */
  readonly skew?: number
  /** Its name, one of its kind at the user. */
  readonly deviceName?: string
}

/** A user as the core imports it: what is staged, or imported directly. Holds secrets. */
export interface ImportUser {
  /** The id in the older service: what each account is known and found by. */
  readonly externalUserId?: string
  /** Free of form; never credentials. */
  readonly userMetadata?: Readonly<Record<string, unknown>>
  /** Roles, which must exist before. */
  readonly userRoles?: readonly ImportUserRole[]
  /** TOTP devices. */
  readonly totpDevices?: readonly ImportTotpDevice[]
  /** One or more; several need account linking. */
  readonly loginMethods: readonly ImportLoginMethod[]
}
