import { describe, expect, it } from 'vitest'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { loginKeysOf } from '../../../src/migration/record-validation/login-keys.js'
import { externalUserIdOf } from '../../../src/migration/record-validation/normalise.js'

describe('the external id of a record', () => {
  it.each([
    ['\u0000\u001f\t legacy|1 \n', 'legacy|1'],
    ['\u00a0legacy|1\u3000', '\u00a0legacy|1\u3000'],
    ['i'.repeat(128), 'i'.repeat(128)],
    ...['\u00a0', '\u2007', '\u202f', '\u200b', '\u0085', '\ufeff'].map((text) => [text, text]),
  ])(
    'is trimmed of the space and control characters, as Java does it: %j',
    (externalUserId, expected) => {
      expect(externalUserIdOf({ externalUserId })).toBe(expected)
    },
  )

  it.each([
    [{}],
    [null],
    [{ externalUserId: 1 }],
    [{ externalUserId: '\t\n\v\f\r\u0000\u001c\u001f' }],
    [{ externalUserId: '\u1680\u2000\u2006\u2008\u200a\u2028\u205f\u3000' }],
    [{ externalUserId: 'i'.repeat(129) }],
    [{ externalUserId: ` ${'i'.repeat(128)}` }],
    [Object.create({ externalUserId: 'inherited' })],
  ])('is none in %j', (record) => expect(externalUserIdOf(record)).toBeUndefined())
})

describe('keys of logins', () => {
  const EMAIL = { recipeId: 'emailpassword', email: 'ann@example.com' } as const
  const LINK = { recipeId: 'passwordless', email: 'ann@example.com' } as const
  const PHONE = { recipeId: 'passwordless', phoneNumber: '+4930123456' } as const
  const GOOGLE = {
    recipeId: 'thirdparty',
    email: 'ann@example.com',
    thirdPartyId: 'google',
    thirdPartyUserId: '1',
  } as const

  type Methods = ImportUser['loginMethods']
  const shared = (one: Methods, other: Methods): boolean => {
    const keys = new Set(loginKeysOf({ loginMethods: one }))
    return loginKeysOf({ loginMethods: other }).some((key) => keys.has(key))
  }

  it.each<[string, Methods, Methods]>([
    ['an e-mail address in other letters', [EMAIL], [{ ...EMAIL, email: ' ANN@Example.com' }]],
    [
      'one of several tenants',
      [{ ...EMAIL, tenantIds: ['a', 'b'] }],
      [{ ...EMAIL, tenantIds: ['c', ' B '] }],
    ],
    ['a phone number with a trunk zero', [PHONE], [{ ...PHONE, phoneNumber: '+49030123456' }]],
    ['one of two logins of a method', [{ ...LINK, ...PHONE }], [PHONE]],
    ['an account of a provider', [GOOGLE], [{ ...GOOGLE, email: 'other@example.com' }]],
    [
      'an e-mail address of primary users',
      [{ ...EMAIL, isPrimary: true }],
      [{ ...GOOGLE, isPrimary: true }],
    ],
    [
      'an e-mail address of several methods without a primary one, which cores 10.1 and 11.4 link',
      [EMAIL, PHONE],
      [GOOGLE, { ...EMAIL, email: 'other@example.com' }],
    ],
    [
      'an e-mail address of a method that is linked to a primary one',
      [{ ...PHONE, isPrimary: true }, EMAIL],
      [{ ...GOOGLE, isPrimary: true }],
    ],
  ])('are shared: %s', (_name, one, other) => {
    expect(shared(one, other)).toBe(true)
    expect(shared(other, one)).toBe(true)
  })

  it.each<[string, Methods, Methods]>([
    ['an e-mail address in another tenant', [EMAIL], [{ ...EMAIL, tenantIds: ['a'] }]],
    ['an e-mail address of another recipe', [EMAIL], [LINK, GOOGLE]],
    ['an e-mail address of a provider', [EMAIL, PHONE], [GOOGLE]],
    ['one of a primary user and one that is not', [{ ...EMAIL, isPrimary: true }], [GOOGLE]],
    ['an id of a provider in other letters', [GOOGLE], [{ ...GOOGLE, thirdPartyId: 'Google' }]],
    [
      'a phone number that a password account has',
      [PHONE],
      [{ ...EMAIL, phoneNumber: '+4930123456' }],
    ],
  ])('are not shared: %s', (_name, one, other) => {
    expect(shared(one, other)).toBe(false)
  })

  it('come once each', () => {
    const keys = loginKeysOf({ loginMethods: [EMAIL, EMAIL, { ...EMAIL, isPrimary: true }] })
    expect(keys.length).toBe(2)
    expect(new Set(keys).size).toBe(2)
  })
})
