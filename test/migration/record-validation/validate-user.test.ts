import { describe, expect, it } from 'vitest'
import { validateUser } from '../../../src/migration/record-validation/validate-user.js'
import { ALL_FEATURES, BAD_USERS, type BadUser, KNOWN } from '../../support/migration/bad-users.js'
import { GOOD_USER, PASSWORD_USER } from './users.js'

/** A user that no feature concerns is judged with all and with none. */
const contextsOf = ({ features }: BadUser) =>
  [ALL_FEATURES, []]
    .filter((_, index) => features === undefined || (features === 'all') === (index === 0))
    .map((given) => ({ ...KNOWN, features: given }))

const [PASSWORD, THIRD_PARTY, PASSWORDLESS] = GOOD_USER.loginMethods
const [DEVICE] = GOOD_USER.totpDevices
const ROLE = { role: 'known-role', tenantIds: ['public'] }
const withMethod = (method: object) => ({ loginMethods: [method] })
const withMembers = (members: object) => ({ ...PASSWORD_USER, ...members })

/** Records with the code and the field of each error. */
const REFUSED: [user: object, ...errors: string[]][] = [
  [{}, 'required loginMethods'],
  [{ loginMethods: [] }, 'no_login_method loginMethods'],
  [{ loginMethods: [1, {}] }, 'wrong_type loginMethods[0]', 'required loginMethods[1].recipeId'],
  [withMembers({ externalUserId: null }), 'wrong_type externalUserId'],
  [withMembers({ externalUserId: ' \t\u3000' }), 'wrong_type externalUserId'],
  [withMembers({ externalUserId: '\u0001' }), 'wrong_type externalUserId'],
  [withMembers({ externalUserId: 'i'.repeat(129) }), 'too_long externalUserId'],
  [withMembers({ userMetadata: [] }), 'wrong_type userMetadata'],
  [withMembers({ userRoles: {} }), 'wrong_type userRoles'],
  [
    withMembers({ userRoles: [{}] }),
    'required userRoles[0].role',
    'required userRoles[0].tenantIds',
  ],
  [withMembers({ userRoles: [{ ...ROLE, role: 'stranger' }] }), 'role_missing userRoles[0].role'],
  [
    withMembers({ userRoles: [{ ...ROLE, tenantIds: ['other-tenant'] }] }),
    'tenant_without_login userRoles[0].tenantIds[0]',
  ],
  [
    withMethod({ ...THIRD_PARTY, tenantIds: ['public', 'nowhere'] }),
    'tenant_missing loginMethods[0].tenantIds[1]',
  ],
  [withMethod({ ...THIRD_PARTY, tenantIds: [] }), 'no_tenant loginMethods[0].tenantIds'],
  [withMethod({ ...THIRD_PARTY, isVerified: 1 }), 'wrong_type loginMethods[0].isVerified'],
  [withMethod({ ...THIRD_PARTY, recipeId: 'webauthn' }), 'unknown_recipe loginMethods[0].recipeId'],
  [
    withMethod({ ...THIRD_PARTY, thirdPartyId: 't'.repeat(29) }),
    'too_long loginMethods[0].thirdPartyId',
  ],
  [withMethod({ recipeId: 'passwordless' }), 'no_login loginMethods[0]'],
  [withMethod({ ...PASSWORDLESS, phoneNumber: 49 }), 'wrong_type loginMethods[0].phoneNumber'],
  ...[
    [Number.MAX_SAFE_INTEGER, 'in_future'],
    [-1, 'out_of_range'],
    ['0', 'wrong_type'],
    [Number.POSITIVE_INFINITY, 'wrong_type'],
  ].map(([timeJoinedInMSSinceEpoch, code]): [object, string] => [
    withMethod({ ...THIRD_PARTY, timeJoinedInMSSinceEpoch }),
    `${code} loginMethods[0].timeJoinedInMSSinceEpoch`,
  ]),
  [withMethod({ ...PASSWORD, email: 'e'.repeat(256) }), 'too_long loginMethods[0].email'],
  [withMethod({ recipeId: 'emailpassword', email: 'a@b.c' }), 'no_password loginMethods[0]'],
  [
    withMethod({ ...PASSWORD, hashingAlgorithm: 'md5' }),
    'unknown_algorithm loginMethods[0].hashingAlgorithm',
  ],
  [
    withMethod({ ...PASSWORD, passwordHash: 'x'.repeat(257) }),
    'too_long loginMethods[0].passwordHash',
    'invalid_hash loginMethods[0].passwordHash',
  ],
  [
    { loginMethods: [PASSWORD, { ...THIRD_PARTY, isPrimary: true }] },
    'two_primaries loginMethods[1].isPrimary',
  ],
  ...[
    [{ secretKey: 's'.repeat(257) }, 'too_long totpDevices[0].secretKey'],
    [{ period: 0.9 }, 'out_of_range totpDevices[0].period'],
    [{ period: 2 ** 32 + 7 }, 'out_of_range totpDevices[0].period'],
    [{ skew: -1 }, 'out_of_range totpDevices[0].skew'],
    [{ deviceName: '' }, 'wrong_type totpDevices[0].deviceName'],
  ].map(([members, error]): [object, string] => [
    withMembers({ totpDevices: [{ ...DEVICE, ...(members as object) }] }),
    String(error),
  ]),
]

describe('validateUser', () => {
  it.each(BAD_USERS)('refuses what the core refuses: $user', (bad) => {
    for (const context of contextsOf(bad)) expect(validateUser(bad.user, context).ok).toBe(false)
  })

  it('has a table of users of which the core without any licence can be asked at least 150', () => {
    const asked = BAD_USERS.filter(({ features, isFault }) => features !== 'all' && !isFault)
    expect(asked.length).toBeGreaterThanOrEqual(150)
  })

  it.each(REFUSED)('names each error by its code and field: %j', (user, ...errors) => {
    const result = validateUser(user, { ...KNOWN, features: ALL_FEATURES })
    expect(result.ok ? [] : result.errors.map(({ code, field }) => `${code} ${field}`)).toEqual(
      errors,
    )
  })

  it('names the features that the core lacks', () => {
    const result = validateUser(GOOD_USER, { features: [] })
    expect(result.ok ? [] : result.errors.map(({ code, field }) => `${code} ${field}`)).toEqual([
      'feature_missing loginMethods[0].tenantIds[1]',
      'feature_missing userRoles[0].tenantIds[1]',
      'feature_missing totpDevices',
      'feature_missing loginMethods',
    ])
  })
})
