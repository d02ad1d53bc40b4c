import { describe, expect, it } from 'vitest'
import { withoutAccountData } from '../../../src/migration/account/without-account-data.js'
import { BAD_USERS } from '../../support/migration/bad-users/index.js'
import { knowSecret } from '../../support/secret-search/index.js'

const SECRETS = {
  hash: 'a-hash-of-nothing-known',
  password: 'Correct-Horse-17',
  key: 'JBSWY3DPEHPK3PXP',
}
for (const secret of Object.values(SECRETS)) knowSecret('a password', secret)

const RECORD = {
  externalUserId: 'ann',
  totpDevices: [{ secretKey: SECRETS.key }],
  loginMethods: [
    { email: ' Ann@Example.com', passwordHash: SECRETS.hash, plainTextPassword: SECRETS.password },
    { phoneNumber: '+49 30 123456', thirdPartyUserId: 'google-17' },
  ],
}

describe('a text of the core without account data', () => {
  it.each([
    'ann@example.com',
    '+4930123456',
    'google-17',
    'GOOGLE-17-and-more',
    ...Object.values(SECRETS),
  ])('tells no name that has a login or a secret in it: %s', (value) => {
    expect(withoutAccountData(`Role ${value} does not exist.`, RECORD)).toBe(
      'Role … does not exist.',
    )
  })

  it('tells names of roles and tenants', () => {
    const text = 'Role admin does not exist., Invalid tenantId: shop for a user role.'
    expect(withoutAccountData(text, RECORD)).toBe(text)
  })

  it.each([
    'ann@example.com',
    'A newer text about google-17',
    'ERROR: value too long for type character varying(256)',
  ])('is cut where its form is not known: %s', (text) => {
    expect(withoutAccountData(text, RECORD)).toBe('…')
  })

  it('is short, however many texts it has', () => {
    const text = Array.from({ length: 100 }, () => 'Role admin does not exist.').join(', ')
    expect(withoutAccountData(text, RECORD)).toHaveLength(500)
  })

  it('is known in each form of the core’s validation', () => {
    for (const { user, errors } of BAD_USERS) {
      for (const text of errors) {
        expect([text, withoutAccountData(text, user)]).not.toEqual([text, '…'])
      }
    }
  })
})
