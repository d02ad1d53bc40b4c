/** What the core accepts and punishes later, or ignores: a closed list. */
export type UserWarningCode =
  | 'role_without_tenants'
  | 'no_primary'
  | 'primary_without_linking'
  | 'totp_name_missing'
  | 'hash_unchecked'
  | 'hash_incomplete'
  | 'login_twice'
  | 'phone_not_e164'
  | 'unknown_member'
  | 'credential_in_metadata'

/** A finding of the validation. `message` has `…` where the core quotes a secret or a whole record. */
export interface UserFinding<Code extends string = string> {
  /** A path such as `loginMethods[1].email`; empty for the record itself. */
  readonly field: string
  readonly code: Code
  readonly message: string
}

export type UserWarning = UserFinding<UserWarningCode>
