/** What the core accepts but what fails later, or what it ignores. */
const WARNING_TEXTS = {
  role_without_tenants:
    'The core assigns a role in the tenants named with it: without one the role is lost.',
  no_primary:
    'Without isPrimary on one of them, core 12 makes a user of each; 10.1 and 11.4 link them.',
  primary_without_linking: 'A primary user needs account linking: without it the import fails.',
  totp_name_missing: 'The core names no device by itself: the import of one without a name fails.',
  hash_unchecked:
    'Without hashingAlgorithm the core does not check the hash, and uses it in place of the password.',
  hash_incomplete:
    'Begins like a hash of its algorithm but is incomplete: no password will match it.',
  login_twice: 'An earlier method of this user has this login: the import fails.',
  phone_not_e164: 'Not a phone number with a country code: the core stores it unchanged.',
  unknown_member: 'The core does not read this member.',
  credential_in_metadata: 'Named like a credential: metadata is no place for one.',
  inexact_number:
    'Above 9007199254740991 JavaScript rounds an integer when it reads one: write the number as a text.',
}

/** What the core refuses. The last three it accepts, and then changes the record or never imports it. */
const ERROR_TEXTS = {
  wrong_type: 'The core reads another type here.',
  required: 'This member is required.',
  too_long: 'This text is too long.',
  too_deep: 'With this member the record has too many levels: the core cannot read it.',
  out_of_range: 'This number is out of range.',
  in_future: 'This time is in the future.',
  feature_missing: 'The core lacks a feature that this needs.',
  role_missing: 'The core lacks this role.',
  tenant_missing: 'The core lacks this tenant.',
  tenant_without_login: 'No login method of the user is in this tenant.',
  no_tenant: 'A login method needs at least one tenant.',
  no_login_method: 'A user needs at least one login method.',
  two_primaries: 'An earlier login method is primary already.',
  unknown_recipe: 'The core imports the recipes emailpassword, thirdparty and passwordless.',
  no_login: 'This method needs email or phoneNumber.',
  no_password: 'This method needs passwordHash and hashingAlgorithm, or plainTextPassword.',
  unknown_algorithm: 'The core knows the algorithms bcrypt, argon2 and firebase_scrypt.',
  invalid_hash: 'This is not a hash of its hashingAlgorithm.',
  not_unicode: 'A lone surrogate is not a character: the core would store a question mark.',
  nul: 'The database of the core cannot store NUL (U+0000).',
  duplicate: 'The record has this twice: the core stores one of them, or fails.',
}

/**
 * A value that the core accepts but that fails later, or that it ignores. This list is closed.
 *
 * @useDeclaredType
 */
export type UserWarningCode = keyof typeof WARNING_TEXTS

export const USER_WARNING_CODES = Object.keys(WARNING_TEXTS) as UserWarningCode[]

/**
 * Why a user is refused. This list is closed. The core accepts records with the last three errors here: a lone
 * surrogate, U+0000 in a text that its database stores as text, and a role that is repeated in a tenant or two
 * TOTP devices with the same name. It then changes such a record or never imports it.
 *
 * @useDeclaredType
 */
export type UserErrorCode = keyof typeof ERROR_TEXTS

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

export type Finding = UserError | UserWarning

const TEXTS = { ...ERROR_TEXTS, ...WARNING_TEXTS }

/** Makes a finding. Its text is that of its code, unless there is more to say. */
export const finding = <Code extends keyof typeof TEXTS>(
  code: Code,
  field: string,
  message: string = TEXTS[code],
): UserFinding<Code> => ({ field, code, message })

export const isError = (found: Finding): found is UserError => !(found.code in WARNING_TEXTS)

/** Names to show. Any other name may contain account data, for example in an object whose keys are e-mail addresses. */
const SHOWN_NAME = /^[A-Za-z_$][\w$-]{0,63}$/

/** Returns the path of a member or a list element, with `…` in place of a name that may contain account data. */
export function fieldOf(parent: string, name: PropertyKey): string {
  if (typeof name === 'number') return `${parent}[${name}]`
  if (!SHOWN_NAME.test(String(name))) return `${parent}["…"]`
  return parent === '' ? String(name) : `${parent}.${String(name)}`
}
