import type { ImportUser } from 'express-service-auth/migration'

/** A hash of a password that nobody knows. */
const PASSWORD = {
  passwordHash: '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy',
  hashingAlgorithm: 'bcrypt',
}

const byEmail = (email: string) =>
  ({ recipeId: 'emailpassword', email, isVerified: true, ...PASSWORD }) as const

const byPhone = (phoneNumber: string) => ({ recipeId: 'passwordless', phoneNumber }) as const

/** Who signed up in the core before anybody thought of a migration. */
export const EARLIER_ACCOUNTS: readonly ImportUser[] = [
  { externalUserId: 'early-1', loginMethods: [byEmail('eve@example.com')] },
  { externalUserId: 'early-2', loginMethods: [byPhone('+41446681800')] },
]

/** The role that the source uses and the core lacks at first. */
export const ROLE = 'editor'

/** What the older service has exported. */
export const SOURCE: readonly ImportUser[] = [
  { externalUserId: 'ada', loginMethods: [byEmail('ada@example.com')] },
  { externalUserId: 'bob', loginMethods: [byPhone('+41446681801')] },
  {
    externalUserId: 'cyd',
    userMetadata: { theme: 'dark' },
    loginMethods: [
      { ...byEmail('cyd@example.com'), isPrimary: true },
      {
        recipeId: 'thirdparty',
        email: 'cyd@example.com',
        thirdPartyId: 'google',
        thirdPartyUserId: 'google-cyd',
        isVerified: true,
      },
    ],
  },
  {
    externalUserId: 'dan',
    userRoles: [{ role: ROLE, tenantIds: ['public'] }],
    loginMethods: [byEmail('dan@example.com')],
  },
  { externalUserId: 'eve', loginMethods: [byEmail('eve@example.com')] },
  { externalUserId: 'fay', loginMethods: [byPhone('+41446681800')] },
]

/** For the two whose login an earlier account has. */
export const CORRECTIONS = [
  {
    replaces: 'eve',
    user: { externalUserId: 'eve', loginMethods: [byEmail('eve.second@example.com')] },
  },
  { leaveOut: 'fay', reason: 'the same person as early-2' },
]

/** Somebody who signs up in the older service while the migration is under way. */
export const LATE_SIGN_UP = {
  provider: 'auth0',
  connection: 'Username-Password-Authentication',
  userId: 'gus',
  email: 'gus@example.com',
  isVerified: true,
  ...PASSWORD,
}
