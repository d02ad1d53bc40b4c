// What the core says of a record: the code and the kind of a text, and the text without the values of the record.

const WRITTEN_CODE = /^(?:[\w.$]{1,200}: ){0,4}(E\d{3}): /

/** A core before 11 passes on the error of its database if a login or an external id is taken. */
const DUPLICATE = /duplicate key value violates unique constraint "(\w{1,200})"/
const CODES_OF_CONSTRAINTS = [
  ['emailpassword_user_to_tenant_email_key', 'E003'],
  ['thirdparty_user_to_tenant_third_party_user_id_key', 'E005'],
  ['passwordless_user_to_tenant_email_key', 'E006'],
  ['passwordless_user_to_tenant_phone_number_key', 'E007'],
  ['userid_mapping_external_user_id_key', 'E031'],
] as const

/**
 * Returns the code that a text begins with, after any names of Java classes, or the code that a newer core would send
 * for the violated constraint.
 */
export function errorCodeOf(text: string): string | undefined {
  const [, written] = WRITTEN_CODE.exec(text) ?? []
  if (written !== undefined) return written
  const constraint = DUPLICATE.exec(text)?.[1]
  // Table names may have a prefix.
  return CODES_OF_CONSTRAINTS.find(([name]) => constraint?.endsWith(name))?.[1]
}

/** Codes for a login that another account has. */
const LOGIN_TAKEN: ReadonlySet<string> = new Set(['E003', 'E005', 'E006', 'E007', 'E022'])

/**
 * Codes of errors that the user's data cause and that every attempt repeats. All other codes, for example for a
 * missing tenant or feature or a database error, have other causes, or another attempt may succeed.
 */
const BLAMING_CODES: ReadonlySet<string> = new Set([
  'E001', // unknown recipe
  ...LOGIN_TAKEN,
  ...['E011', 'E012', 'E013', 'E014', 'E015', 'E016', 'E021', 'E027', 'E028'], // conflicts with another account
  ...['E030', 'E031'], // the external id is taken
  'E034', // the role does not exist
  ...['E043', 'E044'], // the e-mail cannot be verified
])

/** The code for a violated constraint that is not in `CODES_OF_CONSTRAINTS`. */
const UNKNOWN_CONFLICT = 'unknown_conflict'

/** Returns the code of a text that blames the user, or `unknown_conflict`; `undefined` for any other text. */
export function conflictCodeOf(text: string): string | undefined {
  const code = errorCodeOf(text)
  if (code !== undefined) return BLAMING_CODES.has(code) ? code : undefined
  return DUPLICATE.test(text) ? UNKNOWN_CONFLICT : undefined
}

/** Codes of this package for messages of the validation that name what the core lacks, and not a fault of the record. */
const LACKED: Readonly<Record<string, string>> = {
  role_missing: 'Role <name> does not exist\\.',
  tenant_missing: 'Invalid tenantId: <name> for (?:a user role|\\w+ recipe)\\.',
  feature_missing: '(?:MFA|Account linking|Multitenancy) must be enabled (?:to|before) [\\w ]+\\.',
}

const patternOf = (form: string, name: string): string => form.replaceAll('<name>', name)

const LACKED_TEXTS = Object.entries(LACKED).map(([code, form]) => {
  // A name with a comma could contain another text.
  const one = `(?:${patternOf(form, '[^,]*')})`
  return { code, pattern: new RegExp(`^${one}(?:, ${one})*$`) }
})

/**
 * Returns the code for one or several texts, separated by commas, that all name a role, a tenant or a feature
 * that the core lacks; `undefined` for any other text.
 */
export const lackedCodeOf = (texts: string): string | undefined =>
  LACKED_TEXTS.find(({ pattern }) => pattern.test(texts))?.code

const VALIDATION_FORMS = [
  ...Object.values(LACKED),
  '\\w+ (?:is required|should be of type (?:array of )?\\w+)(?: for an? [\\w ]+)?\\.?',
  '(?:TOTP )?\\w+ (?:<name> )?is too long\\. Max length is \\d+\\.',
  'externalUserId <name> is not unique\\. It is already used by another user\\.',
  'TenantId <name> for a user role does not exist in loginMethods\\.',
  "LoginMethod '<name>' has no tenantId",
  'All tenants for a user must share the same database for \\w+ recipe\\.',
  '(?:period|skew) should be >=? 0 for a totp device\\.',
  'At least one loginMethod is required\\.',
  'Either <name> is required for an? \\w+ recipe\\.',
  'No two loginMethods can have isPrimary as true\\.',
  'Invalid (?:recipeId|hashingAlgorithm) for [\\w ]+\\. Pass one of [\\w, ]+!',
  'timeJoined cannot be (?:in future|< 0) for a loginMethod\\.',
  'Password hash is in invalid (?:\\w+ ){0,2}format',
]
const VALIDATION_TEXT = new RegExp(
  `^(?:${VALIDATION_FORMS.map((form) => patternOf(form, '[\\s\\S]*')).join('|')})$`,
)

/** Whether a text is a message of the core's validation. Errors of the core and its database have the same status. */
export const isValidationText = (text: string): boolean => VALIDATION_TEXT.test(text)

/** The parsed error of a failed row. */
export interface RowError {
  /** A code of the core, such as `E003`; `chunk_failed` for an unknown text; absent for validation messages. */
  readonly code?: string
  /** The text of the core, shortened. */
  readonly text: string
  /**
   * `login_taken`: another account, which `findTakenLogin` finds, has a login of the user. `blames_user`: the
   * record must be corrected. `validation`: a check of the core that passed at staging fails now.
   * `chunk_failed`: all rows of a chunk fail with this text, so the cause may be another row.
   */
  readonly kind: 'login_taken' | 'blames_user' | 'validation' | 'chunk_failed'
}

/** Parses the `errorMessage` of a row: a text with a code, or a list of validation messages. */
export function readRowError(message: string): RowError {
  const code = errorCodeOf(message)
  if (code !== undefined) {
    // A text that names a violated constraint contains no code.
    const [, written = message] = new RegExp(`${code}: ([^]*)$`).exec(message) ?? []
    return { code, text: `${code}: ${shortened(written)}`, kind: kindOfCode(code) }
  }
  const [, list] = /^\[([\s\S]*)\]$/.exec(message) ?? []
  const text = shortened(list ?? message)
  if (list === undefined) return { code: 'chunk_failed', text, kind: 'chunk_failed' }
  const lacked = lackedCodeOf(list)
  return { ...(lacked !== undefined && { code: lacked }), text, kind: 'validation' }
}

function kindOfCode(code: string): RowError['kind'] {
  if (LOGIN_TAKEN.has(code)) return 'login_taken'
  return BLAMING_CODES.has(code) ? 'blames_user' : 'chunk_failed'
}

/** Stands for a value that is never shown. */
const CUT = '…'

/** What a statement has violated: all that is shown of its error. */
const VIOLATION =
  /(?:duplicate key value violates unique|violates foreign key|violates check) constraint "\w{1,200}"|null value in column "\w{1,63}"|value too long for type [a-z ]{1,40}\(\d+\)/g

const MAX_TEXT_LENGTH = 500

/** Shortens a text without values for the journal and for reports. */
export const shortened = (text: string): string =>
  (text.match(VIOLATION)?.at(-1) ?? text).slice(0, MAX_TEXT_LENGTH)

/** The part of a text in which a database quotes a statement with its values, or a row. */
const STATEMENT =
  /(?:Batch entry \d|Failing row contains|INSERT INTO |UPDATE \S+ SET |DELETE FROM |SELECT |VALUES ?\(|Detail: |Where: |Key \()[\s\S]*$/

/** What may be a value of any record. */
const PATTERNS = [
  // A hash, of any algorithm.
  /\$\w{1,20}\$[^\s'"]*/g,
  // A number of seven digits or more, such as a phone number, but no part of a UUID.
  /(?<![\p{L}\p{N}-])\+?\p{Nd}(?:[ ()./-]?\p{Nd}){6,40}(?![\p{L}\p{N}-])/gu,
  // A TOTP key, in Base32.
  /\b[A-Z2-7]{16,}\b/g,
]
const WORD = /[^\s'"(),;<>[\]]+/g

/**
 * Cuts the values of a record out of a text of the core about it: logins, secrets and metadata, whatever the text is.
 * Also cuts what may be a value of another record: statements of the database, JSON, addresses, numbers and hashes.
 * Names of roles, tenants and providers stay, and ids.
 */
export function withoutRecordValues(text: string, record: unknown): string {
  return PATTERNS.reduce(
    (rest, pattern) => rest.replace(pattern, CUT),
    cutQuotations(cutValues(text, record)),
  ).replace(WORD, (word) => (word.includes('@') ? CUT : word))
}

/** Cuts JSON and statements. Begins with the first, because a value in one may look like the other. */
function cutQuotations(text: string): string {
  const start = text.indexOf('{')
  const statementStart = text.search(STATEMENT)
  const isJsonFirst = start >= 0 && (statementStart < 0 || start < statementStart)
  return (isJsonFirst ? cutJson(text, start) : text).replace(STATEMENT, (statement) => {
    // The last one, because a value may look like one.
    const violation = statement.match(VIOLATION)?.at(-1)
    return violation === undefined ? CUT : `${CUT} ${violation} ${CUT}`
  })
}

/** Cuts up to the last brace, because a value may contain one. */
function cutJson(text: string, start: number): string {
  const end = text.lastIndexOf('}')
  return end < start ? text : `${text.slice(0, start)}${CUT}${text.slice(end + 1)}`
}

/** Cuts the values of the record where they are whole words, longest first, in any case. */
function cutValues(text: string, record: unknown): string {
  const lowerText = text.toLowerCase()
  return valuesOf(record)
    .flatMap(formsOf)
    .filter((value) => lowerText.includes(value.toLowerCase()))
    .sort((one, other) => other.length - one.length)
    .reduce((rest, value) => rest.replaceAll(wholeWord(value), CUT), text)
}

/** The largest value that becomes a regular expression. */
const MAX_PATTERN_LENGTH = 10_000

function wholeWord(value: string): RegExp | string {
  if (value.length > MAX_PATTERN_LENGTH) return value
  const literal = value.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  const before = /^[\p{L}\p{N}]/u.test(value) ? '(?<![\\p{L}\\p{N}])' : ''
  const after = /[\p{L}\p{N}]$/u.test(value) ? '(?![\\p{L}\\p{N}])' : ''
  return new RegExp(before + literal + after, 'giu')
}

/** Members whose values are shown, because an operator needs them to find the record or to correct the core. */
const SHOWN_MEMBERS: ReadonlySet<string> = new Set([
  ...['externalUserId', 'role', 'tenantIds', 'recipeId', 'thirdPartyId', 'hashingAlgorithm'],
  ...['id', 'ids', 'userId', 'superTokensUserId', 'primaryUserId', 'status', 'errorMessage'],
])

/** Returns the values to cut: logins, secrets, metadata, and what the core does not know. */
function valuesOf(record: unknown): string[] {
  const shown = new Set<string>()
  const others = new Set<string>()
  const collect = (value: unknown, values: Set<string>, isMetadata: boolean): void => {
    if (typeof value === 'string' || typeof value === 'number') values.add(String(value).trim())
    if (typeof value !== 'object' || value === null) return
    for (const [name, member] of Object.entries(value)) {
      const isShown = !isMetadata && SHOWN_MEMBERS.has(name)
      collect(member, isShown ? shown : values, isMetadata || name === 'userMetadata')
    }
  }
  collect(record, others, false)
  // The name of a role stays, even if the metadata has it too.
  return [...others].filter((value) => !shown.has(value))
}

/** Returns the forms in which the core and its database write a value. */
function formsOf(value: string): string[] {
  if (value.length < 2 || CORE_WORDS.has(value.toLowerCase())) return []
  // A phone number is stored without what separates its digits.
  const number = value.replace(/[ ()./-]/g, '')
  const numbers = /^\+?\d{2,}$/.test(number) ? [number] : []
  return [value, JSON.stringify(value).slice(1, -1), value.replaceAll("'", "''"), ...numbers]
}

/** Words of the core's texts. A value that equals one is not cut out: the gap would tell it. */
const CORE_WORDS: ReadonlySet<string> = new Set(
  [
    'account action already an and another app argon2 array as associated at be bcrypt boolean but by',
    'can cannot column constraint could create does device duplicate email emailpassword enabled',
    'error exist exists externalid externaluserid feature firebase_scrypt following for format future',
    'hash hashingalgorithm id in info integer invalid is it key license linked linking login loginmethod',
    'loginmethods long max mfa must no not null object of on one or password passwordhash passwordless',
    'phone phonenumber plaintextpassword postgres primary public recipe recipeid required role roles',
    'secretkey share should string support tenant tenantid tenantids that the thirdparty thirdpartyid',
    'thirdpartyuserid this to too totp tried true type unique unknown used user userid userroles users',
    'value violates we with you',
  ].flatMap((line) => line.split(' ')),
)
