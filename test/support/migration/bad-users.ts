/** The tenants and roles that the core must have for these users. */
export const KNOWN = {
  tenants: ['public', 'known-tenant', 'other-tenant'],
  roles: ['known-role'],
} as const

export const ALL_FEATURES = ['account_linking', 'multi_tenancy', 'mfa'] as const

/** A user that the core refuses. */
export interface BadUser {
  readonly user: unknown
  /** Whether the core must have all features of `ALL_FEATURES` or none; absent if it does not matter. */
  readonly features?: 'all' | 'none'
  /** The core answers 500, so that only the validation of the package refuses it in words. */
  readonly isFault?: true
}

const METHOD = {
  recipeId: 'emailpassword',
  email: 'ann@example.com',
  plainTextPassword: 'bad-users-plain-text',
}
const THIRD_PARTY = {
  recipeId: 'thirdparty',
  email: 'ann@example.com',
  thirdPartyId: 'google',
  thirdPartyUserId: 'google-1',
}
const PASSWORDLESS = { recipeId: 'passwordless', email: 'ann@example.com' }
const METHODS = [METHOD, THIRD_PARTY, PASSWORDLESS]
const ROLE = { role: 'known-role', tenantIds: ['public'] }
const DEVICE = { secretKey: 'bad-users-totp-key', deviceName: 'phone' }
const BCRYPT = `$2a$10$${'b'.repeat(53)}`
const LONG = 'l'.repeat(257)

const withMembers = (members: object) => ({ loginMethods: [METHOD], ...members })
const withMethod = (method: object) => ({ loginMethods: [method] })
const withRoles = (...userRoles: object[]) => withMembers({ userRoles })
const withDevices = (...totpDevices: object[]) => withMembers({ totpDevices })
const withTenants = (...tenantIds: string[]) => withMethod({ ...METHOD, tenantIds })
const withPassword = (members: object) =>
  withMethod({ recipeId: 'emailpassword', email: METHOD.email, ...members })

/** The object with each of the values for a member. */
const each = <Base extends object>(base: Base, name: string, values: readonly unknown[]) =>
  values.map((value) => ({ ...base, [name]: value }))

/** The object without a member. */
const without = (base: object, name: string) =>
  Object.fromEntries(Object.entries(base).filter(([member]) => member !== name))

const NO_TEXTS = [null, 42, false, '', ' \t\n', '\u3000\u2028', ['text'], { text: 'text' }]
const NO_OBJECTS = [null, 'text', 1, true, []]
const NO_LISTS_OF_OBJECTS = [null, 'text', {}, [null], [{}, 'text'], [[]]]
const NO_LISTS_OF_TEXTS = [null, 'public', {}, ['public', null], [1], [''], ['  ']]
const NO_INTEGERS = [null, '30', true, [1], {}]
const NO_BOOLEANS = [null, 'true', 1, {}]

const RECORDS = [
  {},
  { loginMethods: [] },
  { login_methods: [METHOD] },
  ...each({}, 'loginMethods', NO_LISTS_OF_OBJECTS),
  ...[
    ...each({}, 'externalUserId', NO_TEXTS),
    // It is too long before it is trimmed.
    ...each({}, 'externalUserId', ['i'.repeat(129), `${' '.repeat(100)}id${' '.repeat(100)}`]),
    ...each({}, 'userMetadata', NO_OBJECTS),
    ...each({}, 'userRoles', NO_LISTS_OF_OBJECTS),
    ...each({}, 'totpDevices', NO_LISTS_OF_OBJECTS),
  ].map(withMembers),
  { loginMethods: 1, totpDevices: 1, userRoles: 1, userMetadata: 1, externalUserId: 1 },
]

const ROLES = [
  ...each(ROLE, 'tenantIds', NO_LISTS_OF_TEXTS),
  { role: 'known-role' },
  ...each(ROLE, 'role', [' stranger ', 'Known-Role', '\u00a0known-role', 'r'.repeat(256)]),
].map((role) => withRoles(role))

const ROLES_IN_TENANTS = [
  withRoles({ ...ROLE, tenantIds: [' Stranger'] }),
  // No login method is in these tenants.
  withRoles({ ...ROLE, tenantIds: ['Known-Tenant', 'public', 'other-tenant'] }),
  {
    userRoles: [{ ...ROLE, tenantIds: ['known-tenant'] }],
    loginMethods: [{ ...METHOD, recipeId: 'webauthn', tenantIds: ['known-tenant'] }],
  },
  { userRoles: [{ ...ROLE, tenantIds: ['known-tenant'] }] },
]

const DEVICES = [
  ...each(DEVICE, 'secretKey', [...NO_TEXTS, LONG]),
  ...each(DEVICE, 'deviceName', [...NO_TEXTS, LONG]),
  ...each(DEVICE, 'period', [...NO_INTEGERS, 0, -1, 0.9, 2 ** 31, 2 ** 32, 1e19, 1e300]),
  ...each(DEVICE, 'skew', [...NO_INTEGERS, -1, -1.9, 2 ** 31, 3e9]),
  { deviceName: 'phone' },
].map((device) => withDevices(device))

const LOGIN_METHODS = [
  {},
  ...each(METHOD, 'recipeId', NO_TEXTS),
  ...each(METHOD, 'recipeId', ['webauthn', 'EmailPassword', ' emailpassword', 'constructor']),
  ...each(METHOD, 'recipeId', ['__proto__']),
  ...each(METHOD, 'tenantIds', [...NO_LISTS_OF_TEXTS, []]),
  ...each(METHOD, 'isVerified', NO_BOOLEANS),
  ...each(METHOD, 'isPrimary', NO_BOOLEANS),
  ...each(METHOD, 'timeJoinedInMSSinceEpoch', NO_INTEGERS),
  ...each(METHOD, 'timeJoinedInMSSinceEpoch', [4e12, Number.MAX_SAFE_INTEGER, 2 ** 62]),
  ...each(METHOD, 'timeJoinedInMSSinceEpoch', [-1, -1.5, -1e15, 1e19]),
  { timeJoinedInMSSinceEpoch: '', isPrimary: 0, isVerified: 0, tenantIds: 0, recipeId: 0 },
].map(withMethod)

const RECIPES = [
  ...[METHOD, THIRD_PARTY].flatMap((method) => [
    ...each(method, 'email', NO_TEXTS),
    without(method, 'email'),
  ]),
  ...METHODS.flatMap((method) => each(method, 'email', ['e'.repeat(256)])),
  ...['thirdPartyId', 'thirdPartyUserId'].flatMap((name) => each(THIRD_PARTY, name, NO_TEXTS)),
  { recipeId: 'thirdparty' },
  { ...THIRD_PARTY, thirdPartyId: 't'.repeat(29) },
  { ...THIRD_PARTY, thirdPartyUserId: LONG },
  ...['email', 'phoneNumber'].flatMap((name) => each({ recipeId: 'passwordless' }, name, NO_TEXTS)),
  { recipeId: 'passwordless' },
  { recipeId: 'passwordless', email: null, phoneNumber: '+4930123456' },
  { recipeId: 'passwordless', phoneNumber: LONG },
].map(withMethod)

const PASSWORDS = [
  ...['passwordHash', 'hashingAlgorithm', 'plainTextPassword'].flatMap((name) =>
    each({}, name, NO_TEXTS),
  ),
  {},
  { plaintextPassword: 'bad-users-plain-text' },
  { passwordHash: BCRYPT },
  { hashingAlgorithm: 'bcrypt' },
  ...each({ passwordHash: BCRYPT }, 'hashingAlgorithm', ['md5', 'sha256', 'BCRYPT2']),
  ...each({ passwordHash: BCRYPT }, 'hashingAlgorithm', ['firebase-scrypt', '\u00a0bcrypt']),
  ...each({ hashingAlgorithm: ' BCrypt ' }, 'passwordHash', ['$2$10$x', '$1$salt$hash']),
  ...each({ hashingAlgorithm: ' BCrypt ' }, 'passwordHash', ['bcrypt', '$2c$10$x', 'x$2a$10$x']),
  ...each({ hashingAlgorithm: 'argon2' }, 'passwordHash', ['$argon2', '$argon$v=19']),
  ...each({ hashingAlgorithm: 'argon2' }, 'passwordHash', ['$Argon2id$v=19', BCRYPT, LONG]),
  { passwordHash: BCRYPT.padEnd(257, 'b'), hashingAlgorithm: 'bcrypt' },
  { ...METHOD, passwordHash: 'nothing', hashingAlgorithm: 'bcrypt' },
].map(withPassword)

const WITH_FEATURES = [
  ...ROLES_IN_TENANTS,
  ...DEVICES,
  ...METHODS.map((method) => withMethod({ ...method, tenantIds: ['public', 'Stranger'] })),
  withMethod({ tenantIds: ['stranger'] }),
  withMethod({ recipeId: 'webauthn', tenantIds: ['stranger'] }),
  withTenants('stranger', 'known tenant'),
  { loginMethods: [METHOD, THIRD_PARTY].map((method) => ({ ...method, isPrimary: true })) },
]

const WITHOUT_FEATURES = [
  withDevices(),
  withDevices(DEVICE),
  withDevices({ period: 0 }, { skew: -1 }),
  withRoles({ ...ROLE, tenantIds: ['known-tenant', 'public'] }),
  withRoles({ ...ROLE, tenantIds: ['PUBLIC'] }),
  withTenants('known-tenant', 'public'),
  withTenants('known-tenant'),
  withTenants('public '),
  { loginMethods: [METHOD, THIRD_PARTY] },
  { loginMethods: [{}, {}] },
]

const FAULTS = [...each(ROLE, 'role', NO_TEXTS), { tenantIds: ['public'] }].map((role) =>
  withRoles(role),
)

/** The validation of the package, the stand-in core and the real core must refuse these users alike. */
export const BAD_USERS: readonly BadUser[] = [
  ...[...RECORDS, ...ROLES, ...LOGIN_METHODS, ...RECIPES, ...PASSWORDS].map((user) => ({ user })),
  ...FAULTS.map((user) => ({ user, isFault: true as const })),
  ...WITH_FEATURES.map((user) => ({ user, features: 'all' as const })),
  ...WITHOUT_FEATURES.map((user) => ({ user, features: 'none' as const })),
]
