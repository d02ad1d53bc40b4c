/** A plain user with a password; the core takes it. */
export const person = (name: string, more: object = {}) => ({
  externalUserId: name,
  loginMethods: [
    {
      recipeId: 'emailpassword',
      email: `${name}@example.com`,
      passwordHash: '$2a$10$GzEm3vKoAqnJCTWesRARCe/ovjt/07qjvcH9jbLUg44Fn77gMZkmm',
      hashingAlgorithm: 'bcrypt',
      isVerified: true,
      timeJoinedInMSSinceEpoch: 1_700_000_000_000,
    },
  ],
  ...more,
})

export const people = (count: number, prefix = 'user') =>
  Array.from({ length: count }, (_, index) => person(`${prefix}-${index}`))

export const sourceOf = (records: readonly unknown[], name = 'people') => ({
  name,
  records: async function* () {
    yield* records
  },
})
