import { describe, expect, it } from 'vitest'
import { validateUser } from '../../../src/migration/record-validation/validate-user.js'
import { ALL_FEATURES, KNOWN } from '../../support/migration/bad-users.js'
import { GOOD_USER, PASSWORD_USER } from './users.js'

const CONTEXT = { ...KNOWN, features: ALL_FEATURES }
const [METHOD] = PASSWORD_USER.loginMethods
const THIRD_PARTY = GOOD_USER.loginMethods[1]
const PHONE = { recipeId: 'passwordless', phoneNumber: '+4930123456' }
const BCRYPT = GOOD_USER.loginMethods[0].passwordHash
const ARGON2 =
  '$argon2id$v=19$m=65536,t=2,p=1$WnV4dGVzdHNhbHQxMjM$0Zt1dWlkLXRlc3QtaGFzaC1vZi0zMi1ieXRlcw'
const FIREBASE = '$f_scrypt$aGFzaA==$c2FsdA==$m=14$r=8$s=Bw=='

function warningsOf(user: unknown, context: object = CONTEXT): string[] {
  const { ok, warnings, ...rest } = validateUser(user, context)
  expect({ ok, ...rest }).toEqual({ ok: true, user })
  return warnings.map(({ code, field }) => `${code} ${field}`)
}

const ofMethod = (method: object) => warningsOf({ loginMethods: [method] })
const ofHash = (passwordHash: string, hashingAlgorithm: string) =>
  ofMethod({ recipeId: 'emailpassword', email: 'a@b.c', passwordHash, hashingAlgorithm })
const ofMetadata = (userMetadata: object) => warningsOf({ ...PASSWORD_USER, userMetadata })

describe('a user that the core takes', () => {
  it('comes back as it is, without a warning', () => {
    expect(warningsOf(GOOD_USER)).toEqual([])
    const result = validateUser(GOOD_USER, CONTEXT)
    expect(result.ok && result.user).toBe(GOOD_USER)
  })

  it('is judged without what is not given', () => {
    expect(warningsOf(GOOD_USER, {})).toEqual([])
    const stranger = {
      userRoles: [{ role: 'stranger', tenantIds: ['somewhere'] }],
      loginMethods: [{ ...METHOD, tenantIds: ['somewhere'] }],
    }
    expect(warningsOf(stranger, {})).toEqual([])
  })

  it('is judged by sets as by lists', () => {
    const sets = { tenants: new Set(['known-tenant']), roles: new Set(['known-role']) }
    expect(warningsOf(GOOD_USER, sets)).toEqual([])
    expect(validateUser(GOOD_USER, { ...sets, roles: new Set(['other']) }).ok).toBe(false)
  })

  it('needs account linking, which multi-factor authentication brings along', () => {
    const linked = { loginMethods: [{ ...METHOD, isPrimary: true }, THIRD_PARTY] }
    expect(warningsOf(linked, { features: ['mfa'] })).toEqual([])
    expect(warningsOf(linked, { features: ['account_linking'] })).toEqual([])
  })

  it('is refused to a context that is neither lists nor sets', () => {
    const context = { roles: 'known-role' } as never
    expect(() => validateUser(GOOD_USER, context)).toThrow(
      new TypeError('validateUser: roles must be a list or a set of names'),
    )
  })
})

describe('a warning', () => {
  it('of a role without tenants', () => {
    const userRoles = [{ role: 'known-role', tenantIds: [] }]
    expect(warningsOf({ ...PASSWORD_USER, userRoles })).toEqual([
      'role_without_tenants userRoles[0].tenantIds',
    ])
  })

  it('of several methods without a primary one', () => {
    expect(warningsOf({ loginMethods: [METHOD, { ...THIRD_PARTY, isPrimary: false }] })).toEqual([
      'no_primary loginMethods',
    ])
  })

  it('of one primary method without account linking', () => {
    const user = { loginMethods: [{ ...METHOD, isPrimary: true }] }
    expect(warningsOf(user, { features: ['multi_tenancy'] })).toEqual([
      'primary_without_linking loginMethods[0].isPrimary',
    ])
    expect(warningsOf(user, {})).toEqual([])
  })

  it('of a TOTP device without a name', () => {
    const totpDevices = [{ secretKey: 'warned-totp-key' }]
    expect(warningsOf({ ...PASSWORD_USER, totpDevices })).toEqual([
      'totp_name_missing totpDevices[0].deviceName',
    ])
  })

  it('of a hash that the core does not check', () => {
    expect(ofMethod({ ...METHOD, passwordHash: 'anything' })).toEqual([
      'hash_unchecked loginMethods[0].passwordHash',
    ])
  })

  it.each([
    ['bcrypt', BCRYPT],
    ['BCRYPT', ` ${BCRYPT.replace('2a', '2y')}\n`],
    ['argon2', ARGON2],
    ['argon2', ARGON2.replace('$v=19', '').replace('argon2id', 'argon2d')],
    ['firebase_scrypt', FIREBASE],
    ['firebase_scrypt', '$f_scrypt$aGFzaA$c2FsdA$s=Bw==$r=8$m=14'],
  ])('not of a whole hash: %s %s', (algorithm, hash) => {
    expect(ofHash(hash, algorithm)).toEqual([])
  })

  it.each([
    ['bcrypt', '$2a'],
    ['bcrypt', BCRYPT.slice(0, -1)],
    ['bcrypt', `${BCRYPT}b`],
    ['bcrypt', BCRYPT.replace('$10$', '$3$')],
    ['bcrypt', BCRYPT.replace('$10$', '$32$')],
    ['argon2', '$argon2i'],
    ['argon2', ARGON2.slice(0, ARGON2.lastIndexOf('$'))],
    ['argon2', ARGON2.replace('m=65536,', '')],
    ['firebase_scrypt', FIREBASE.replace('m=14', 'm=0')],
    ['firebase_scrypt', FIREBASE.replace('aGFzaA==', '')],
    ['firebase_scrypt', FIREBASE.replace('c2FsdA==', 'sa-lt')],
  ])('of a hash that only begins well: %s %s', (algorithm, hash) => {
    expect(ofHash(hash, algorithm)).toEqual(['hash_incomplete loginMethods[0].passwordHash'])
  })

  it('of a login that the same record has twice', () => {
    const again = { ...METHOD, email: ' ANN@example.com ' }
    const elsewhere = { ...METHOD, tenantIds: ['known-tenant'] }
    expect(
      warningsOf({ loginMethods: [{ ...METHOD, isPrimary: true }, elsewhere, again, THIRD_PARTY] }),
    ).toEqual(['login_twice loginMethods[2]'])
  })

  it.each(['+4930123456', ' +4930123456 ', '+49 30 123456', '+49-(0)30-123456', '+14155550100'])(
    'not of a phone number that the core stores in E.164: %s',
    (phoneNumber) => expect(ofMethod({ ...PHONE, phoneNumber })).toEqual([]),
  )

  it.each(['030 123456', '004930123456', '+0493012345', `+1${'2'.repeat(15)}`, '+', 'ann'])(
    'of a phone number that the core cannot parse: %s',
    (phoneNumber) => {
      expect(ofMethod({ ...PHONE, phoneNumber })).toEqual([
        'phone_not_e164 loginMethods[0].phoneNumber',
      ])
    },
  )

  it('of members that the core does not read', () => {
    const user = JSON.parse(`{
      "roles": [], "e-mail": "x", "ann@example.com": 1, "__proto__": {"a": 1},
      "userRoles": [{"role": "known-role", "tenantIds": ["public"], "roles": 1}],
      "totpDevices": [{"secretKey": "warned-totp-key", "deviceName": "x", "verified": true}],
      "loginMethods": [{"recipeId": "emailpassword", "email": "a@b.c", "externalUserId": "x",
        "plainTextPassword": "warned-plain-text", "plaintextPassword": "warned-other-text"}]
    }`)
    expect(warningsOf(user)).toEqual([
      'unknown_member roles',
      'unknown_member e-mail',
      'unknown_member ["…"]',
      'unknown_member __proto__',
      'unknown_member userRoles[0].roles',
      'unknown_member totpDevices[0].verified',
      'unknown_member loginMethods[0].externalUserId',
      'unknown_member loginMethods[0].plaintextPassword',
    ])
    const { warnings } = validateUser(user)
    expect(warnings.at(-1)?.message).toMatch('It reads plainTextPassword.')
  })

  it('of a password that another recipe does not read', () => {
    expect(ofMethod({ ...THIRD_PARTY, passwordHash: BCRYPT, phoneNumber: '+1' })).toEqual([
      'unknown_member loginMethods[0].passwordHash',
      'unknown_member loginMethods[0].phoneNumber',
    ])
  })

  it.each([
    'password',
    'Passwd',
    'pwd',
    'old_password',
    'passwordHash',
    'password_salt',
    'passphrase',
    'clientSecret',
    'secrets',
    'refreshToken',
    'tokens',
    'api_key',
    'apiKeys',
    'privateKey',
    'recovery-codes',
    'backupCodes',
    'otp',
    'pin',
    'totpSeed',
    'credentials',
  ])('of a member of metadata that is named like a credential: %s', (name) => {
    expect(ofMetadata({ [name]: 'value' })).toEqual([`credential_in_metadata userMetadata.${name}`])
  })

  it.each(['passwordChangedAt', 'tokenCount', 'shipping', 'monkey', 'secretary', 'key', 'compass'])(
    'not of a member of metadata that is none: %s',
    (name) => expect(ofMetadata({ [name]: 'value' })).toEqual([]),
  )

  it('not of a member of metadata that says nothing', () => {
    expect(ofMetadata({ password: true, token: null, secret: '' })).toEqual([])
  })

  it('of a credential anywhere in metadata', () => {
    const userMetadata = {
      list: [{ deep: [[{ token: 'x' }]] }],
      'ann@example.com': { password: { hash: 'x' } },
    }
    expect(ofMetadata(userMetadata)).toEqual([
      'credential_in_metadata userMetadata.list[0].deep[0][0].token',
      'credential_in_metadata userMetadata["…"].password',
    ])
  })

  it('of a number in metadata that has lost digits since the source was written', () => {
    const metadata = '{"id":12345678901234567890,"list":[{"low":-9007199254740993}],"large":1e400}'
    expect(ofMetadata(JSON.parse(metadata))).toEqual([
      'inexact_number userMetadata.id',
      'inexact_number userMetadata.list[0].low',
      'inexact_number userMetadata.large',
    ])
  })

  it('not of a number in metadata that is exact', () => {
    expect(ofMetadata({ list: [9007199254740991, -9007199254740991, 0, 0.1, 1e-7] })).toEqual([])
  })
})
