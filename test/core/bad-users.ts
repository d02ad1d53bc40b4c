import { HASH } from './people.js'

/** A user whom the core refuses, and its texts in its order. */
export interface BadUser {
  readonly name: string
  readonly user: object
  readonly errors: readonly string[]
  /** What the licence must have for these texts. */
  readonly feature?: 'mfa' | 'account_linking' | 'multi_tenancy'
}

const NO_STRINGS = [null, 7, true, [], {}, '', ' \t\n', '\u2003']
const NO_INTEGERS = [null, '1', true, [], {}]
const NO_BOOLEANS = [null, 'true', 1, [], {}]
const NO_OBJECTS = [null, 'x', 1, true, []]
const NO_LISTS_OF_OBJECTS = [null, 'x', {}, [1], [null], [{}, 'x'], [[]]]
const NO_LISTS_OF_STRINGS = [null, 'public', {}, [1], [null], [''], ['public', ' ']]

const PASSWORD = { recipeId: 'emailpassword', email: 'a@example.com', plainTextPassword: 'x' }
const HASHED = {
  ...PASSWORD,
  plainTextPassword: undefined,
  passwordHash: HASH,
  hashingAlgorithm: 'bcrypt',
}
const PROVIDER = {
  recipeId: 'thirdparty',
  email: 'a@example.com',
  thirdPartyId: 'google',
  thirdPartyUserId: 'g',
}
const PHONE = { recipeId: 'passwordless', phoneNumber: '+4930231250001' }

const NO_PASSWORD =
  'Either (passwordHash, hashingAlgorithm) or plainTextPassword is required for an emailpassword recipe.'
const NO_LOGIN = 'Either email or phoneNumber is required for a passwordless recipe.'
const NO_ROLE = 'Role esa-no-such-role does not exist.'
const UNKNOWN_RECIPE =
  'Invalid recipeId for loginMethod. Pass one of emailpassword, thirdparty or, passwordless!'
const UNKNOWN_ALGORITHM =
  'Invalid hashingAlgorithm for emailpassword recipe. Pass one of bcrypt, argon2 or, firebase_scrypt!'

const long = (length: number) => 'x'.repeat(length)
const of = (...loginMethods: object[]) => ({ loginMethods })
const withRole = (role: object) => ({ ...of(PASSWORD), userRoles: [role] })
const withDevice = (device: object) => ({
  ...of(PASSWORD),
  totpDevices: [{ secretKey: 'k', deviceName: 'd', ...device }],
})

/** One bad user for each value of a wrong type. */
function wrongTypes(
  field: string,
  [values, kind, suffix]: readonly [readonly unknown[], string, string],
  make: (member: object) => object,
  also: readonly string[] = [],
): BadUser[] {
  return values.map((value) => ({
    name: `${field} ${JSON.stringify(value)} (${suffix})`,
    user: make({ [field]: value }),
    errors: [`${field} should be of type ${kind}${suffix}`, ...also],
  }))
}

const text = (suffix: string) => [NO_STRINGS, 'string', suffix] as const
const common = ' for a loginMethod.'
const method = (member: object) => of({ ...PASSWORD, ...member })

function bad(name: string, user: object, ...errors: string[]): BadUser {
  return { name, user, errors }
}

function needing(feature: NonNullable<BadUser['feature']>, users: readonly BadUser[]): BadUser[] {
  return users.map((user) => ({ ...user, feature }))
}

const OF_TYPES = [
  ...wrongTypes('externalUserId', text('.'), (member) => ({ ...of(PASSWORD), ...member })),
  ...wrongTypes('userMetadata', [NO_OBJECTS, 'object', '.'], (m) => ({ ...of(PASSWORD), ...m })),
  ...wrongTypes('userRoles', [NO_LISTS_OF_OBJECTS, 'array of object', '.'], (m) => ({
    ...of(PASSWORD),
    ...m,
  })),
  ...wrongTypes('totpDevices', [NO_LISTS_OF_OBJECTS, 'array of object', '.'], (m) => ({
    ...of(PASSWORD),
    ...m,
  })),
  ...wrongTypes('loginMethods', [NO_LISTS_OF_OBJECTS, 'array of object', '.'], (m) => m),
  ...wrongTypes('recipeId', text(common), method),
  ...wrongTypes('tenantIds', [NO_LISTS_OF_STRINGS, 'array of string', common], method),
  ...wrongTypes('isVerified', [NO_BOOLEANS, 'boolean', common], method),
  ...wrongTypes('isPrimary', [NO_BOOLEANS, 'boolean', common], method),
  ...wrongTypes('timeJoinedInMSSinceEpoch', [NO_INTEGERS, 'integer', ' for a loginMethod'], method),
  ...wrongTypes('email', text(' for an emailpassword recipe.'), method),
  ...wrongTypes('plainTextPassword', text(' for an emailpassword recipe.'), method, [NO_PASSWORD]),
  ...wrongTypes('email', text(' for a thirdparty recipe.'), (m) => of({ ...PROVIDER, ...m })),
  ...wrongTypes('thirdPartyId', text(' for a thirdparty recipe.'), (m) =>
    of({ ...PROVIDER, ...m }),
  ),
  ...wrongTypes('thirdPartyUserId', text(' for a thirdparty recipe.'), (m) =>
    of({ ...PROVIDER, ...m }),
  ),
  ...wrongTypes('email', text(' for a passwordless recipe.'), (m) => of({ ...PHONE, ...m })),
  ...wrongTypes('phoneNumber', text(' for a passwordless recipe.'), (m) => of({ ...PHONE, ...m }), [
    NO_LOGIN,
  ]),
  ...wrongTypes(
    'tenantIds',
    [NO_LISTS_OF_STRINGS, 'array of string', ' for a user role.'],
    (m) => withRole({ role: 'esa-no-such-role', ...m }),
    [NO_ROLE],
  ),
]

const OF_DEVICES = [
  ...wrongTypes('secretKey', text(' for a totp device.'), withDevice),
  ...wrongTypes('deviceName', text(' for a totp device.'), withDevice),
  ...wrongTypes('period', [NO_INTEGERS, 'integer', ' for a totp device.'], withDevice),
  ...wrongTypes('skew', [NO_INTEGERS, 'integer', ' for a totp device.'], withDevice),
  bad('period 0', withDevice({ period: 0 }), 'period should be > 0 for a totp device.'),
  bad('period 0.5', withDevice({ period: 0.5 }), 'period should be > 0 for a totp device.'),
  bad('skew -1', withDevice({ skew: -1 }), 'skew should be >= 0 for a totp device.'),
  bad(
    'long key',
    withDevice({ secretKey: long(257) }),
    `TOTP secretKey ${long(257)} is too long. Max length is 256.`,
  ),
  bad(
    'long device name',
    withDevice({ deviceName: long(257) }),
    `TOTP deviceName ${long(257)} is too long. Max length is 256.`,
  ),
]

const OF_RULES = [
  bad('nothing', {}, 'loginMethods is required.'),
  bad('no method', of(), 'At least one loginMethod is required.'),
  bad('no recipe', of({ email: 'a@example.com' }), 'recipeId is required for a loginMethod.'),
  bad('webauthn', of({ recipeId: 'webauthn' }), UNKNOWN_RECIPE),
  bad('another case', of({ ...PASSWORD, recipeId: 'EmailPassword' }), UNKNOWN_RECIPE),
  bad(
    'long id',
    { externalUserId: long(129), ...of(PASSWORD) },
    `externalUserId ${long(129)} is too long. Max length is 128.`,
  ),
  bad('unknown role', withRole({ role: ' esa-no-such-role ', tenantIds: [] }), NO_ROLE),
  bad(
    'long role',
    withRole({ role: long(256), tenantIds: [] }),
    `role ${long(256)} is too long. Max length is 255.`,
    `Role ${long(256)} does not exist.`,
  ),
  bad(
    'future',
    method({ timeJoinedInMSSinceEpoch: 9e12 }),
    'timeJoined cannot be in future for a loginMethod.',
  ),
  bad(
    'before 1970',
    method({ timeJoinedInMSSinceEpoch: -1 }),
    'timeJoined cannot be < 0 for a loginMethod.',
  ),
  bad(
    'long address',
    method({ email: long(256) }),
    `email ${long(256)} is too long. Max length is 256.`,
  ),
  bad('no password', of({ ...PASSWORD, plainTextPassword: undefined }), NO_PASSWORD),
  bad('no hash', of({ ...HASHED, passwordHash: undefined }), NO_PASSWORD),
  bad('no algorithm', of({ ...HASHED, hashingAlgorithm: undefined }), NO_PASSWORD),
  bad('unknown algorithm', of({ ...HASHED, hashingAlgorithm: 'md5' }), UNKNOWN_ALGORITHM),
  bad(
    'no bcrypt',
    of({ ...HASHED, passwordHash: '$2c$11$x' }),
    'Password hash is in invalid BCrypt format',
  ),
  bad(
    'no argon2',
    of({ ...HASHED, hashingAlgorithm: ' Argon2 ' }),
    'Password hash is in invalid Argon2 format',
  ),
  bad(
    'long hash',
    of({ ...HASHED, passwordHash: `$2a${long(254)}` }),
    'passwordHash is too long. Max length is 256.',
  ),
  bad(
    'nothing of a password',
    of({ recipeId: 'emailpassword' }),
    'email is required for an emailpassword recipe.',
    NO_PASSWORD,
  ),
  bad(
    'long provider',
    of({ ...PROVIDER, thirdPartyId: long(29) }),
    `thirdPartyId ${long(29)} is too long. Max length is 28.`,
  ),
  bad(
    'long user of a provider',
    of({ ...PROVIDER, thirdPartyUserId: long(257) }),
    `thirdPartyUserId ${long(257)} is too long. Max length is 256.`,
  ),
  bad('nothing of passwordless', of({ recipeId: 'passwordless' }), NO_LOGIN),
  bad(
    'long number',
    of({ ...PHONE, phoneNumber: long(257) }),
    `phoneNumber ${long(257)} is too long. Max length is 256.`,
  ),
]

export const BAD_USERS: readonly BadUser[] = [
  ...OF_TYPES,
  ...OF_RULES,
  ...needing('mfa', OF_DEVICES),
  ...needing('account_linking', [
    bad(
      'two primaries',
      of({ ...PASSWORD, isPrimary: true }, { ...PROVIDER, isPrimary: true }),
      'No two loginMethods can have isPrimary as true.',
    ),
  ]),
  ...needing('multi_tenancy', [
    bad(
      'unknown tenant',
      method({ tenantIds: ['public', 'esa-nowhere'] }),
      'Invalid tenantId: esa-nowhere for emailpassword recipe.',
    ),
  ]),
]
