/** What the core accepts and punishes later, or ignores: a closed list. */
export const USER_WARNING_CODES = [
  'role_without_tenants',
  'no_primary',
  'primary_without_linking',
  'totp_name_missing',
  'hash_unchecked',
  'hash_incomplete',
  'login_twice',
  'phone_not_e164',
  'unknown_member',
  'credential_in_metadata',
  'inexact_number',
] as const

/**
 * What the core accepts and punishes later, or ignores: a closed list.
 *
 * @useDeclaredType
 */
export type UserWarningCode = (typeof USER_WARNING_CODES)[number]

/**
 * Why a user is refused: a closed list. The core itself has only texts, and accepts records with the last
 * three: a lone surrogate, U+0000 in a text that its database stores as one, and the same role twice in a
 * tenant or two TOTP devices with one name. It then changes such a record, or never imports it.
 */
export type UserErrorCode =
  | 'wrong_type'
  | 'required'
  | 'too_long'
  | 'too_deep'
  | 'out_of_range'
  | 'in_future'
  | 'feature_missing'
  | 'role_missing'
  | 'tenant_missing'
  | 'tenant_without_login'
  | 'no_tenant'
  | 'no_login_method'
  | 'two_primaries'
  | 'unknown_recipe'
  | 'no_login'
  | 'no_password'
  | 'unknown_algorithm'
  | 'invalid_hash'
  | 'not_unicode'
  | 'nul'
  | 'duplicate'

/** A finding of the validation. `message` has `…` where the core quotes a secret or a whole record. */
export interface UserFinding<Code extends string = string> {
  /** A path such as `loginMethods[1].email`; empty for the record itself. */
  readonly field: string
  /** What is wrong. */
  readonly code: Code
  /** What is wrong, in a sentence. */
  readonly message: string
}

/** Why a user is refused. */
export type UserError = UserFinding<UserErrorCode>
/** What of a user the core accepts and punishes later, or ignores. */
export type UserWarning = UserFinding<UserWarningCode>
