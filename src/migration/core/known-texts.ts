// The texts of the core, with placeholders for the values that they quote.

const HASH_OR_PASSWORD = '(passwordHash, hashingAlgorithm) or plainTextPassword'

/** The messages of the core's validation. */
const VALIDATION = [
  '<member> is required<suffix>',
  '<member> should be of type <type><suffix>',
  'passwordHash is too long. Max length is <number>.',
  'TOTP <field> … is too long. Max length is <number>.',
  'role <name> is too long. Max length is <number>.',
  '<field> … is too long. Max length is <number>.',
  'externalUserId … is not unique. It is already used by another user.',
  'Role <name> does not exist.',
  'TenantId <name> for a user role does not exist in loginMethods.',
  'Invalid tenantId: <name> for a user role.',
  'Invalid tenantId: <name> for <word> recipe.',
  "LoginMethod '…' has no tenantId",
  'All tenants for a user must share the same database for <word> recipe.',
  'MFA must be enabled to import totp devices.',
  'period should be > 0 for a totp device.',
  'skew should be >= 0 for a totp device.',
  'At least one loginMethod is required.',
  'Account linking must be enabled to import multiple loginMethods.',
  'No two loginMethods can have isPrimary as true.',
  'Invalid recipeId for loginMethod. Pass one of emailpassword, thirdparty or, passwordless!',
  'Multitenancy must be enabled before importing users to a different tenant.',
  'timeJoined cannot be in future for a loginMethod.',
  'timeJoined cannot be < 0 for a loginMethod.',
  `Either ${HASH_OR_PASSWORD} is required for an emailpassword recipe.`,
  'Either email or phoneNumber is required for a passwordless recipe.',
  'Invalid hashingAlgorithm for emailpassword recipe. Pass one of bcrypt, argon2 or, firebase_scrypt!',
  'Password hash is in invalid format',
  'Password hash is in invalid BCrypt format',
  'Password hash is in invalid Argon2 format',
  'Password hash is in invalid Firebase SCrypt format',
]

/** Codes of this package for texts of the validation that name what the core lacks, and not a fault of the record. */
const LACKED: readonly (readonly [code: string, texts: readonly string[]])[] = [
  ['role_missing', ['Role <name> does not exist.']],
  [
    'tenant_missing',
    ['Invalid tenantId: <name> for a user role.', 'Invalid tenantId: <name> for <word> recipe.'],
  ],
  [
    'feature_missing',
    [
      'MFA must be enabled to import totp devices.',
      'Account linking must be enabled to import multiple loginMethods.',
      'Multitenancy must be enabled before importing users to a different tenant.',
    ],
  ],
]

const SUPPORT = 'Please contact support'
const FAILED_TO = [
  'We tried to create the primary user for the userId <name>',
  'We tried to create the externalUserId mapping for the superTokenUserId <name>',
  'We tried to add the userId <name> to the tenantId <name>',
  'We tried to link the userId <name> to the primary userId <name>',
]
const BECAUSE = [
  `it doesn't exist. This should not happen. ${SUPPORT}.`,
  "it doesn't exist.",
  'it is not a primary user.',
  'it is already linked with another primary user.',
  'the account info is already associated with another primary user.',
  'another primary user with thirdPartyId … and thirdPartyUserId … already exists.',
  'another primary user with <word> … already exists.',
  'another user with thirdPartyId … and thirdPartyUserId … already exists.',
  'another user with <word> … already exists.',
]

/** The texts that follow a code in the error of a failed import. */
const IMPORT = [
  'A user with thirdPartyId … and thirdPartyUserId … already exists in <word> loginMethod.',
  'A user with <word> … already exists in <word> loginMethod.',
  'A user with externalId … already exists',
  'Unknown recipeId(s) […] for loginMethod.',
  'Role does not exist! You need to pre-create the role before assigning it to the user.',
  `Account linking feature is not enabled for this app. ${SUPPORT} to enable it.`,
  "Cannot use feature: <word>, because the license key is missing, or doesn't have this feature enabled.",
  'Tenant with the following connectionURIDomain, appId and tenantId combination not found: (…)',
  'App with the following connectionURIDomain and appId combination not found: (…)',
  'Email … is already verified for the user',
  'null email address was found for the userId <name> while verifying the email',
  ...FAILED_TO.flatMap((what) => BECAUSE.map((why) => `${what} but ${why}`)),
]

/** Stands for a value that is never shown. */
export const CUT = '…'
/** Stands for the name of a role, a tenant or a user. */
export const NAME = '<name>'

const ANYTHING = '[\\s\\S]*?'
const EVERY_VALUE = /^/

/** Matches ids of tenants and users and names of roles, but neither e-mail addresses nor phone numbers. */
const PLAIN_NAME = /^(?=.*[A-Za-z])[\w.:-]{1,64}$/

const MEMBERS = [
  ...['externalUserId', 'userMetadata', 'userRoles', 'role', 'tenantIds', 'totpDevices'],
  ...['secretKey', 'period', 'skew', 'deviceName', 'loginMethods', 'recipeId', 'isVerified'],
  ...['isPrimary', 'timeJoinedInMSSinceEpoch', 'email', 'phoneNumber', 'passwordHash'],
  ...['hashingAlgorithm', 'plainTextPassword', 'thirdPartyId', 'thirdPartyUserId'],
]
const RECIPE = '(?:an emailpassword|a thirdparty|a passwordless) recipe'

interface Placeholder {
  readonly pattern: string
  /** Matches the values that may be shown. Without it, no value may. */
  readonly shown?: RegExp
}

export const PLACEHOLDERS: Readonly<Record<string, Placeholder>> = {
  [CUT]: { pattern: ANYTHING },
  [NAME]: { pattern: ANYTHING, shown: PLAIN_NAME },
  '<field>': {
    pattern: '(?:externalUserId|email|phoneNumber|thirdParty(?:User)?Id|secretKey|deviceName)',
    shown: EVERY_VALUE,
  },
  '<member>': { pattern: `(?:${MEMBERS.join('|')})`, shown: EVERY_VALUE },
  '<word>': { pattern: '\\w{1,40}', shown: EVERY_VALUE },
  '<number>': { pattern: '\\d{1,9}', shown: EVERY_VALUE },
  '<type>': { pattern: '(?:array of )?(?:string|integer|boolean|object)', shown: EVERY_VALUE },
  '<suffix>': {
    pattern: `(?: for (?:a user role|a totp device|a loginMethod|${RECIPE}))?\\.?`,
    shown: EVERY_VALUE,
  },
}
const PLACEHOLDER = new RegExp(`(${Object.keys(PLACEHOLDERS).join('|')})`)

/** Literal parts and placeholders, alternating. */
const partsOf = (text: string): string[] => text.split(PLACEHOLDER)

const patternOf = (text: string): string =>
  partsOf(text)
    .map((part) => {
      const placeholder = PLACEHOLDERS[part]
      return placeholder === undefined
        ? part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
        : `(${placeholder.pattern})`
    })
    .join('')

interface KnownText {
  /** Matches one text at `lastIndex`, up to the comma before the next text or the end of the message. */
  readonly pattern: RegExp
  readonly parts: readonly string[]
}

/** The messages of the core's validation, of a call that it cannot read, and of a failed import. */
export const KNOWN_TEXTS: readonly KnownText[] = [
  'Invalid Json Input',
  ...VALIDATION,
  ...IMPORT,
].map((text) => ({
  pattern: new RegExp(`${patternOf(text)}(?=, |$)`, 'y'),
  parts: partsOf(text),
}))

const VALIDATION_TEXTS = VALIDATION.map((text) => new RegExp(`^${patternOf(text)}$`))

const LACKED_TEXTS = LACKED.map(([code, texts]) => {
  // A name with a comma could contain another text.
  const one = `(?:${texts.map((text) => patternOf(text).replaceAll(ANYTHING, '[^,]*')).join('|')})`
  return { code, pattern: new RegExp(`^${one}(?:, ${one})*$`) }
})

/**
 * Returns the code for one or several texts, separated by commas, that all name a role, a tenant or a feature
 * that the core lacks; `undefined` for any other text.
 */
export const lackedCodeOf = (texts: string): string | undefined =>
  LACKED_TEXTS.find(({ pattern }) => pattern.test(texts))?.code

/** Whether a text is a message of the core's validation. */
export const isValidationText = (text: string): boolean =>
  VALIDATION_TEXTS.some((pattern) => pattern.test(text))
