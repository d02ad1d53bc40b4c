import { describe, expect, it } from 'vitest'
import { validateUser } from '../../../src/migration/record-validation/validate-user.js'
import { ALL_FEATURES, BAD_USERS, type BadUser, KNOWN } from '../../support/migration/bad-users.js'
import { findingsOf, GOOD_USER, PASSWORD_USER } from './users.js'

const CONTEXT = { ...KNOWN, features: ALL_FEATURES }

/** A user that no feature concerns is judged with all and with none. */
const contextsOf = ({ features }: BadUser) =>
  [ALL_FEATURES, []]
    .filter((_, index) => features === undefined || (features === 'all') === (index === 0))
    .map((given) => ({ ...KNOWN, features: given }))

const [PASSWORD, THIRD_PARTY] = GOOD_USER.loginMethods
const [PLAIN] = PASSWORD_USER.loginMethods
const [DEVICE] = GOOD_USER.totpDevices
const ROLE = { role: 'known-role', tenantIds: ['public'] }
const withMethod = (method: object) => ({ loginMethods: [method] })
const withMembers = (members: object) => ({ ...PASSWORD_USER, ...members })
const withDevices = (...totpDevices: object[]) =>
  withMembers({ totpDevices: totpDevices.map((device) => ({ ...DEVICE, ...device })) })
const withNames = (...names: string[]) =>
  withDevices(...names.map((deviceName) => ({ deviceName })))
const withTime = (timeJoinedInMSSinceEpoch: unknown) =>
  withMethod({ ...THIRD_PARTY, timeJoinedInMSSinceEpoch })
const withRoles = (...userRoles: object[]) => ({ ...GOOD_USER, userRoles })
const withHash = (passwordHash: string, hashingAlgorithm: string) =>
  withMethod({ recipeId: 'emailpassword', email: 'a@b.c', passwordHash, hashingAlgorithm })
const withPhone = (phoneNumber: string) => withMethod({ recipeId: 'passwordless', phoneNumber })
const withMetadata = (userMetadata: object) => withMembers({ userMetadata })

const TIME = 'loginMethods[0].timeJoinedInMSSinceEpoch'
const HASH = 'loginMethods[0].passwordHash'
const PHONE_WARNING = 'phone_not_e164 loginMethods[0].phoneNumber'
const BCRYPT = PASSWORD.passwordHash
const ARGON2 =
  '$argon2id$v=19$m=65536,t=2,p=1$WnV4dGVzdHNhbHQxMjM$0Zt1dWlkLXRlc3QtaGFzaC1vZi0zMi1ieXRlcw'
const FIREBASE = '$f_scrypt$aGFzaA==$c2FsdA==$m=14$r=8$s=Bw=='

type Case = [user: object, ...findings: string[]]

/** Records with the code and the field of each error. */
const REFUSED: Case[] = [
  [{}, 'required loginMethods'],
  [{ loginMethods: [] }, 'no_login_method loginMethods'],
  [
    { loginMethods: [1, {}] },
    'wrong_type loginMethods[0]',
    'unknown_recipe loginMethods[1].recipeId',
  ],
  [withMembers({ externalUserId: '\u0001' }), 'wrong_type externalUserId'],
  [withMembers({ externalUserId: 'i'.repeat(129) }), 'too_long externalUserId'],
  [withMembers({ userMetadata: [] }), 'wrong_type userMetadata'],
  [
    withMembers({ userRoles: [{}] }),
    'required userRoles[0].role',
    'required userRoles[0].tenantIds',
  ],
  [withRoles({ ...ROLE, role: 'stranger' }), 'role_missing userRoles[0].role'],
  [
    withRoles({ ...ROLE, tenantIds: ['other-tenant'] }),
    'tenant_without_login userRoles[0].tenantIds[0]',
  ],
  [
    withMethod({ ...THIRD_PARTY, tenantIds: ['public', 'nowhere'] }),
    'tenant_missing loginMethods[0].tenantIds[1]',
  ],
  [withMethod({ ...THIRD_PARTY, tenantIds: [] }), 'no_tenant loginMethods[0].tenantIds'],
  [withMethod({ recipeId: 'passwordless' }), 'no_login loginMethods[0]'],
  [withTime(Number.MAX_SAFE_INTEGER), `in_future ${TIME}`],
  [withTime(-1), `out_of_range ${TIME}`],
  [withTime(Number.POSITIVE_INFINITY), `wrong_type ${TIME}`],
  [withMethod({ recipeId: 'emailpassword', email: 'a@b.c' }), 'no_password loginMethods[0]'],
  [withHash(BCRYPT, 'md5'), 'unknown_algorithm loginMethods[0].hashingAlgorithm'],
  [withHash('x', 'bcrypt'), `invalid_hash ${HASH}`],
  [withHash(FIREBASE.replace('$m=14', ''), 'firebase_scrypt'), `invalid_hash ${HASH}`],
  [withHash(FIREBASE.replace('m=14', 'm=x'), 'firebase_scrypt'), `invalid_hash ${HASH}`],
  [
    { loginMethods: [PASSWORD, { ...THIRD_PARTY, isPrimary: true }] },
    'two_primaries loginMethods[1].isPrimary',
  ],
  [withDevices({ period: 0.9 }), 'out_of_range totpDevices[0].period'],
  // What the core names once, it trims, and writes a tenant in small letters.
  [withNames('phone', ' phone\n'), 'duplicate totpDevices[1].deviceName'],
  [
    withRoles(ROLE, { role: ` ${ROLE.role}\t`, tenantIds: [' PUBLIC'] }),
    'duplicate userRoles[1].tenantIds[0]',
  ],
  [
    // One that is ignored hides none that is refused.
    { ...withNames('phone', 'phone'), loginMethods: [{ recipeId: 'passwordless', color: 'red' }] },
    'unknown_member loginMethods[0].color',
    'duplicate totpDevices[1].deviceName',
    'no_login loginMethods[0]',
  ],
]

const UNREAD = JSON.parse(`{
  "roles": [], "e-mail": "x", "ann@example.com": 1, "__proto__": {"a": 1},
  "userRoles": [{"role": "known-role", "tenantIds": ["public"], "roles": 1}],
  "totpDevices": [{"secretKey": "warned-totp-key", "deviceName": "x", "verified": true}],
  "loginMethods": [{"recipeId": "emailpassword", "email": "a@b.c", "externalUserId": "x",
    "plainTextPassword": "warned-plain-text", "plaintextPassword": "warned-other-text"}]
}`)

/** Records that the core takes, with the code and the field of each warning. */
const TAKEN: Case[] = [
  [GOOD_USER],
  [withRoles({ ...ROLE, tenantIds: [] }), 'role_without_tenants userRoles[0].tenantIds'],
  [{ loginMethods: [PLAIN, { ...THIRD_PARTY, isPrimary: false }] }, 'no_primary loginMethods'],
  [withDevices({ deviceName: undefined }), 'totp_name_missing totpDevices[0].deviceName'],
  [withMethod({ ...PLAIN, passwordHash: 'anything' }), `hash_unchecked ${HASH}`],
  [
    {
      loginMethods: [
        { ...PLAIN, isPrimary: true },
        { ...PLAIN, tenantIds: ['known-tenant'] },
        { ...PLAIN, email: ' ANN@example.com ' },
        THIRD_PARTY,
      ],
    },
    'login_twice loginMethods[2]',
  ],
  [
    UNREAD,
    'unknown_member userRoles[0].roles',
    'unknown_member totpDevices[0].verified',
    'unknown_member loginMethods[0].externalUserId',
    'unknown_member loginMethods[0].plaintextPassword',
    ...['roles', 'e-mail', '["…"]', '__proto__'].map((name) => `unknown_member ${name}`),
  ],
  [withMethod({ ...THIRD_PARTY, passwordHash: BCRYPT }), `unknown_member ${HASH}`],
  [withMetadata({ password: true, token: null, secret: '' })],
  [
    withMetadata({
      list: [{ deep: [[{ token: 'x' }]] }],
      'ann@example.com': { password: { hash: 'x' } },
    }),
    'credential_in_metadata userMetadata.list[0].deep[0][0].token',
    'credential_in_metadata userMetadata["…"].password',
  ],
  [
    withMetadata(
      JSON.parse('{"id":12345678901234567890,"list":[{"low":-9007199254740993}],"e":1e400}'),
    ),
    ...['id', 'list[0].low', 'e'].map((name) => `inexact_number userMetadata.${name}`),
  ],
  [withMetadata({ list: [9007199254740991, -9007199254740991, 0, 0.1, 1e-7] })],
  [withPhone(' +49-(0)30-123456 ')],
  // Neither is stored in E.164: one has no country, the other too many digits.
  [withPhone('030 123456'), PHONE_WARNING],
  [withPhone(`+1${'2'.repeat(15)}`), PHONE_WARNING],
  // Not the same to the core.
  [withNames('phone', 'Phone')],
  [withNames('é', 'e\u0301')],
  [withRoles(ROLE, { ...ROLE, tenantIds: ['known-tenant'] })],
  // The core adds a tenant once.
  [withMethod({ ...PASSWORD, tenantIds: ['public', 'public'] })],
]

describe('validateUser', () => {
  it.each(BAD_USERS)('refuses what the core refuses: $user', (bad) => {
    for (const context of contextsOf(bad)) expect(validateUser(bad.user, context).ok).toBe(false)
  })

  it.each(REFUSED)('names each error by its code and field: %j', (user, ...findings) => {
    expect(validateUser(user, CONTEXT).ok).toBe(false)
    expect(findingsOf(user, CONTEXT).toSorted()).toEqual(findings.toSorted())
  })

  it.each(TAKEN)('returns the user unchanged, with its warnings: %j', (user, ...findings) => {
    const result = validateUser(user, CONTEXT)
    expect(result.ok && result.user).toBe(user)
    expect(findingsOf(user, CONTEXT)).toEqual(findings)
  })

  it('names the features that the core lacks, and needs none that is not given', () => {
    const linked = { loginMethods: [{ ...PLAIN, isPrimary: true }, THIRD_PARTY] }
    const primary = withMethod({ ...PLAIN, isPrimary: true })
    const warning = ['primary_without_linking loginMethods[0].isPrimary']
    expect(findingsOf(GOOD_USER, { features: [] })).toEqual([
      'feature_missing loginMethods',
      'feature_missing loginMethods[0].tenantIds[1]',
      'feature_missing userRoles[0].tenantIds[1]',
      'feature_missing totpDevices',
    ])
    // Multi-factor authentication brings account linking along.
    for (const features of [['mfa'], ['account_linking']]) {
      expect(findingsOf(linked, { features })).toEqual([])
    }
    expect(findingsOf(primary, { features: ['multi_tenancy'] })).toEqual(warning)
    expect(validateUser(primary, { features: [] }).ok).toBe(true)
    for (const user of [GOOD_USER, linked, primary]) expect(findingsOf(user)).toEqual([])
  })

  it('asks sets as it asks lists, and nothing that is not given', () => {
    const sets = { tenants: new Set(['known-tenant']), roles: new Set(['known-role']) }
    const stranger = {
      userRoles: [{ role: 'stranger', tenantIds: ['somewhere'] }],
      loginMethods: [{ ...PLAIN, tenantIds: ['somewhere'] }],
    }
    expect(findingsOf(GOOD_USER, sets)).toEqual([])
    expect(validateUser(stranger, sets).ok).toBe(false)
    expect(findingsOf(stranger)).toEqual([])
  })
})

describe('a hash', () => {
  it.each([
    ['bcrypt', BCRYPT],
    ['BCRYPT', ` ${BCRYPT.replace('2a', '2y')}\n`],
    ['argon2', ARGON2.replace('$v=19', '').replace('argon2id', 'argon2d')],
    ['firebase_scrypt', '$f_scrypt$aGFzaA$c2FsdA$s=Bw==$r=8$m=14'],
  ])('is whole: %s %s', (algorithm, hash) => {
    expect(findingsOf(withHash(hash, algorithm))).toEqual([])
  })

  it.each([
    ['bcrypt', BCRYPT.slice(0, -1)],
    ['bcrypt', `${BCRYPT}b`],
    ['bcrypt', BCRYPT.replace('$10$', '$3$')],
    ['bcrypt', BCRYPT.replace('$10$', '$32$')],
    ['argon2', ARGON2.slice(0, ARGON2.lastIndexOf('$'))],
    ['argon2', ARGON2.replace('m=65536,', '')],
    ['firebase_scrypt', FIREBASE.replace('m=14', 'm=0')],
    ['firebase_scrypt', FIREBASE.replace('c2FsdA==', 'sa-lt')],
  ])('only begins well: %s %s', (algorithm, hash) => {
    expect(findingsOf(withHash(hash, algorithm))).toEqual([`hash_incomplete ${HASH}`])
  })
})

it.each([
  ...['password', 'Passwd', 'pwd', 'old_password', 'passwordHash', 'password_salt', 'passphrase'],
  ...['clientSecret', 'secrets', 'refreshToken', 'tokens', 'api_key', 'apiKeys', 'privateKey'],
  ...['recovery-codes', 'backupCodes', 'otp', 'pin', 'totpSeed', 'credentials'],
])('a member of metadata is named like a credential: %s', (name) => {
  const warning = `credential_in_metadata userMetadata.${name}`
  expect(findingsOf(withMetadata({ [name]: 'value' }))).toEqual([warning])
})

it.each(['passwordChangedAt', 'tokenCount', 'shipping', 'monkey', 'secretary', 'key', 'compass'])(
  'a member of metadata is not: %s',
  (name) => expect(findingsOf(withMetadata({ [name]: 'value' }))).toEqual([]),
)
