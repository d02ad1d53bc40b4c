/** An ordinary record: two login methods, a hash, roles and some metadata, 830 characters. */
export function recordOf(index) {
  const common = {
    tenantIds: ['public', 'shop'],
    isVerified: true,
    timeJoinedInMSSinceEpoch: 1_600_000_000_000 + index,
    email: `user${index}@example.com`,
  }
  return {
    externalUserId: `auth0|${index.toString(16).padStart(24, '0')}`,
    userMetadata: {
      firstName: 'Ann',
      lastName: 'Example',
      preferences: { language: 'en', theme: 'dark', newsletter: true },
      tags: ['early', 'beta'],
      plan: 'pro',
    },
    userRoles: [
      { role: 'customer', tenantIds: ['public', 'shop'] },
      { role: 'editor', tenantIds: ['shop'] },
    ],
    loginMethods: [
      {
        recipeId: 'emailpassword',
        isPrimary: true,
        passwordHash: `$2a$10$${String(index).padStart(53, 'b')}`,
        hashingAlgorithm: 'bcrypt',
        ...common,
      },
      {
        recipeId: 'thirdparty',
        thirdPartyId: 'google',
        thirdPartyUserId: String(index).padStart(21, '0'),
        ...common,
      },
    ],
  }
}
