import type { Account } from '../../../src/migration/account/reconcile-user.js'
import type { CoreLoginMethod } from '../../../src/migration/core/core-client.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'

const CORE_USER_ID = '3f1c0c5e-8a3d-4a36-9a51-0d9a3d2f7c01'
const IMPORTED_AT = 1_700_000_000_000

/** A record with something of everything that is compared. */
export const RECORD = {
  externalUserId: 'legacy|1',
  userMetadata: { name: 'Ann', preferences: { language: 'en' }, tags: ['a', 'b'] },
  userRoles: [
    { role: ' editor ', tenantIds: ['public', 'Shop'] },
    { role: 'reader', tenantIds: ['shop'] },
  ],
  totpDevices: [{ secretKey: 'reconciled-totp-key', deviceName: ' phone ' }],
  loginMethods: [
    {
      recipeId: 'emailpassword',
      tenantIds: ['public', 'Shop'],
      isPrimary: true,
      isVerified: true,
      timeJoinedInMSSinceEpoch: 1_600_000_000_000.7,
      email: ' Ann@Example.com',
      plainTextPassword: 'reconciled-plain-text',
    },
    {
      recipeId: 'thirdparty',
      email: 'ann@example.com',
      thirdPartyId: 'google',
      thirdPartyUserId: 'G-1',
    },
    { recipeId: 'passwordless', email: 'ann@example.com', phoneNumber: ' +4930123456' },
  ],
} as const satisfies ImportUser

export const METHODS: readonly CoreLoginMethod[] = [
  {
    recipeId: 'thirdparty',
    recipeUserId: 'b',
    tenantIds: ['public'],
    verified: false,
    timeJoined: IMPORTED_AT,
    email: 'ann@example.com',
    thirdParty: { id: 'google', userId: 'G-1' },
  },
  {
    recipeId: 'emailpassword',
    recipeUserId: 'legacy|1',
    tenantIds: ['shop', 'public'],
    verified: true,
    timeJoined: 1_600_000_000_000,
    email: 'ann@example.com',
  },
  {
    recipeId: 'passwordless',
    recipeUserId: 'c',
    tenantIds: ['public'],
    verified: false,
    timeJoined: IMPORTED_AT,
    email: 'ann@example.com',
    phoneNumber: '+4930123456',
  },
]

/** The account of the record, by hand. */
export const ACCOUNT: Account = {
  coreUserId: CORE_USER_ID,
  user: {
    id: 'legacy|1',
    isPrimaryUser: true,
    tenantIds: ['public', 'shop'],
    timeJoined: 1_600_000_000_000,
    emails: ['ann@example.com'],
    phoneNumbers: ['+4930123456'],
    thirdParty: [{ id: 'google', userId: 'G-1' }],
    loginMethods: METHODS,
  },
  roles: new Map([
    ['public', ['editor', 'added-later']],
    ['shop', ['reader', 'editor']],
  ]),
  metadata: {
    name: 'Ann',
    preferences: { language: 'en', theme: 'dark' },
    tags: ['a', 'b'],
    lastSeen: 1,
  },
  totpDevices: [
    { name: 'other', period: 60, skew: 0, verified: true },
    { name: 'phone', period: 30, skew: 1, verified: false },
  ],
}

/** The same account with other login methods. */
export const withMethods = (loginMethods: readonly CoreLoginMethod[]): Account => ({
  ...ACCOUNT,
  user: { ...ACCOUNT.user, loginMethods },
})
