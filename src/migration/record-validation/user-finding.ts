/** Codes of values that the core accepts but that fail later, or that it ignores. This list is closed. */
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
 * A value that the core accepts but that fails later, or that it ignores. This list is closed.
 *
 * @useDeclaredType
 */
export type UserWarningCode = (typeof USER_WARNING_CODES)[number]

/**
 * Why a user is refused. This list is closed. The core accepts records with the last three errors here: a lone
 * surrogate, U+0000 in a text that its database stores as text, and a role that is repeated in a tenant or two
 * TOTP devices with the same name. It then changes such a record or never imports it.
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

/** A finding of the validation. */
export interface UserFinding<Code extends string = string> {
  /** A path such as `loginMethods[1].email`, or empty for the record itself. */
  readonly field: string
  /** The kind of finding. */
  readonly code: Code
  /** A sentence that describes the finding, without values of the record. */
  readonly message: string
}

/** Why a user is refused. */
export type UserError = UserFinding<UserErrorCode>
/** A value of a user that the core accepts but that fails later, or that it ignores. */
export type UserWarning = UserFinding<UserWarningCode>

export const NOT_UNICODE =
  'A lone surrogate is not a character: the core would store a question mark.'

const MAX_ERRORS = 1000
/** Maximum per code, so that many warnings of one code hide no other code. */
const MAX_WARNINGS_OF_A_CODE = 100

/** Collects the findings of one record. */
export interface FindingCollector {
  readonly errors: UserError[]
  readonly warnings: UserWarning[]
  refuse(code: UserErrorCode, field: string, message: string): void
  warn(code: UserWarningCode, field: string, message: string): void
}

export function openFindings(): FindingCollector {
  const errors: UserError[] = []
  const warnings: UserWarning[] = []
  const counts = new Map<UserWarningCode, number>()
  return {
    errors,
    warnings,
    refuse(code, field, message) {
      if (errors.length < MAX_ERRORS) errors.push({ field, code, message })
    },
    warn(code, field, message) {
      const count = counts.get(code) ?? 0
      counts.set(code, count + 1)
      if (count < MAX_WARNINGS_OF_A_CODE) warnings.push({ field, code, message })
    },
  }
}

/** Names to show. Any other name may contain account data, for example in an object whose keys are e-mail addresses. */
const SHOWN_NAME = /^[A-Za-z_$][\w$-]{0,63}$/

/** Returns the path of a member or a list element, with `…` in place of a name that may contain account data. */
export function fieldOf(parent: string, name: PropertyKey): string {
  if (typeof name === 'number') return `${parent}[${name}]`
  if (!SHOWN_NAME.test(String(name))) return `${parent}["…"]`
  return parent === '' ? String(name) : `${parent}.${String(name)}`
}
