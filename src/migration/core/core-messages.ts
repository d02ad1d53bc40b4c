const ERROR_CODE = /^(?:[\w.$]{1,200}: ){0,4}(E\d{3}): /

/** Returns the code at the start of a text such as `E003: A user with …`, after any names of Java classes. */
export const writtenCodeOf = (text: string): string | undefined => ERROR_CODE.exec(text)?.[1]

const DUPLICATE = /duplicate key value violates unique constraint "(\w{1,200})"/

/** A core before 11 passes on the error of its database if a login or an external id is taken. */
const CODES_OF_CONSTRAINTS = [
  ['emailpassword_user_to_tenant_email_key', 'E003'],
  ['thirdparty_user_to_tenant_third_party_user_id_key', 'E005'],
  ['passwordless_user_to_tenant_email_key', 'E006'],
  ['passwordless_user_to_tenant_phone_number_key', 'E007'],
  ['userid_mapping_external_user_id_key', 'E031'],
] as const

/** Returns the code that a text begins with, or the code that a newer core would send for the violated constraint. */
export function errorCodeOf(text: string): string | undefined {
  const written = writtenCodeOf(text)
  if (written !== undefined) return written
  const constraint = DUPLICATE.exec(text)?.[1]
  // Table names may have a prefix.
  return CODES_OF_CONSTRAINTS.find(([name]) => constraint?.endsWith(name))?.[1]
}

/** Returns the part of a database error that names the violated constraint, without values. */
export const duplicateIn = (text: string): string | undefined => DUPLICATE.exec(text)?.[0]

/**
 * Codes of errors that the user's data cause and that every attempt repeats. All other codes, for example for a
 * missing tenant or feature or a database error, have other causes, or another attempt may succeed.
 */
const BLAMING_CODES: ReadonlySet<string> = new Set([
  'E001', // unknown recipe
  ...['E003', 'E005', 'E006', 'E007'], // the login is taken
  ...['E011', 'E012', 'E013', 'E014', 'E015', 'E016', 'E021', 'E022', 'E027', 'E028'], // conflicts with another account
  ...['E030', 'E031'], // the external id is taken
  'E034', // the role does not exist
  ...['E043', 'E044'], // the e-mail cannot be verified
])

export const blamesTheUser = (code: string): boolean => BLAMING_CODES.has(code)

/** Codes for a login that another account has. */
const LOGIN_TAKEN: ReadonlySet<string> = new Set(['E003', 'E005', 'E006', 'E007', 'E022'])

export const saysLoginIsTaken = (code: string): boolean => LOGIN_TAKEN.has(code)

/** The code for a violated constraint that is not in `CODES_OF_CONSTRAINTS`. */
const UNKNOWN_CONFLICT = 'unknown_conflict'

/** Returns the code of a text that blames the user, or `unknown_conflict`; `undefined` for any other text. */
export function conflictCodeOf(text: string): string | undefined {
  const code = errorCodeOf(text)
  if (code !== undefined) return blamesTheUser(code) ? code : undefined
  return duplicateIn(text) === undefined ? undefined : UNKNOWN_CONFLICT
}

/** The core's texts on a malformed request. They contain no data of a user. */
const PLAIN_REFUSALS = [
  'Invalid Json Input',
  'You can only add 10000 users at a time.',
  'Invalid value for status. Pass one of NEW, PROCESSING, or FAILED!',
  'Max limit allowed is 500',
  'limit must a positive integer with min value 1',
  'invalid pagination token',
  'AppId or tenantId not found',
  'Only public tenantId can call this app specific API',
  'cdi-version',
]
const FIELD_REFUSAL =
  /^Field name '(?:users|ids|limit|userId|userIdType)' (?:is invalid in JSON input|must be an int in the GET request|cannot contain more than 500 elements|cannot contain an empty string)/

/** Returns the known text at the start of a refusal, which an error may quote; `undefined` for an unknown text. */
export function plainRefusalIn(text: string): string | undefined {
  const beginning = text.trimStart()
  const field = FIELD_REFUSAL.exec(beginning)?.[0]
  return field ?? PLAIN_REFUSALS.find((known) => beginning.startsWith(known))
}

/** Whether the core does not know the path. Any other 404 is from a proxy or from a core that is starting. */
export const saysNotFound = (text: string | undefined): boolean => text?.trim() === 'Not found'

const IN_MEMORY = 'This API is not supported in the in-memory database.'

export const saysInMemory = (text: string): boolean => text.trim() === IN_MEMORY
