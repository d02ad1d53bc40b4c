import type { ImportUser } from '../../../src/migration/core/import-user.js'
import {
  type UserContext,
  validateUser,
} from '../../../src/migration/record-validation/validate-user.js'

/** Fits the core that `KNOWN` of the bad users describes, with all features. */
export const GOOD_USER = {
  externalUserId: 'legacy|1',
  userMetadata: { name: 'Ann', preferences: { language: 'en', tags: ['a'] } },
  userRoles: [{ role: 'known-role', tenantIds: ['public', 'Known-Tenant'] }],
  totpDevices: [{ secretKey: 'good-user-totp-key', period: 30, skew: 0, deviceName: 'phone' }],
  loginMethods: [
    {
      recipeId: 'emailpassword',
      tenantIds: ['public', 'known-tenant'],
      isPrimary: true,
      isVerified: true,
      timeJoinedInMSSinceEpoch: 1_600_000_000_000.5,
      email: ' Ann@Example.com',
      passwordHash: `$2a$10$${'g'.repeat(53)}`,
      hashingAlgorithm: ' bcrypt',
    },
    {
      recipeId: 'thirdparty',
      email: 'ann@example.com',
      thirdPartyId: 'google',
      thirdPartyUserId: 'google-1',
    },
    { recipeId: 'passwordless', email: 'ann@example.com', phoneNumber: '+4930123456' },
  ],
} as const satisfies ImportUser

export const PASSWORD_USER = {
  loginMethods: [
    { recipeId: 'emailpassword', email: 'ann@example.com', plainTextPassword: 'users-plain-text' },
  ],
} as const satisfies ImportUser

/** The code and the field of each finding. */
export function findingsOf(user: unknown, context?: UserContext): string[] {
  const { warnings, ...result } = validateUser(user, context)
  const errors = result.ok ? [] : result.errors
  return [...errors, ...warnings].map(({ code, field }) => `${code} ${field}`)
}
