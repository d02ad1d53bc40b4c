import {
  type BadUser,
  each,
  METHOD,
  NO_TEXTS,
  PASSWORDLESS,
  THIRD_PARTY,
  withMethod,
} from './bad-user.js'

const NO_PASSWORD =
  'Either (passwordHash, hashingAlgorithm) or plainTextPassword is required for an emailpassword recipe.'
const UNKNOWN_ALGORITHM =
  'Invalid hashingAlgorithm for emailpassword recipe. Pass one of bcrypt, argon2 or, firebase_scrypt!'
const NO_LOGIN = 'Either email or phoneNumber is required for a passwordless recipe.'
const BAD_BCRYPT = 'Password hash is in invalid BCrypt format'
const BAD_ARGON2 = 'Password hash is in invalid Argon2 format'

const EMAIL = 'ann@example.com'
const BCRYPT = `$2a$10$${'b'.repeat(53)}`
const LONG_EMAIL = 'e'.repeat(256)
const LONG_ID = 't'.repeat(29)
const LONG = 'l'.repeat(257)

const withPassword = (members: object) =>
  withMethod({ recipeId: 'emailpassword', email: EMAIL, ...members })

export const BAD_RECIPES: readonly BadUser[] = [
  ...[METHOD, THIRD_PARTY].flatMap(({ recipeId, email, ...method }) => [
    ...each(`email of ${recipeId}`, NO_TEXTS, (bad) => ({
      user: withMethod({ recipeId, ...method, email: bad }),
      errors: [`email should be of type string for ${articleOf(recipeId)} ${recipeId} recipe.`],
    })),
    {
      name: `no email of ${recipeId}`,
      user: withMethod({ recipeId, ...method }),
      errors: [`email is required for ${articleOf(recipeId)} ${recipeId} recipe.`],
    },
  ]),
  ...[METHOD, THIRD_PARTY, PASSWORDLESS].map((method) => ({
    name: `an email of 256 characters of ${method.recipeId}`,
    user: withMethod({ ...method, email: LONG_EMAIL }),
    errors: [`email ${LONG_EMAIL} is too long. Max length is 256.`],
  })),
  ...['passwordHash', 'hashingAlgorithm', 'plainTextPassword'].flatMap((name) =>
    each(name, NO_TEXTS, (bad) => ({
      user: withPassword({ [name]: bad }),
      errors: [`${name} should be of type string for an emailpassword recipe.`, NO_PASSWORD],
    })),
  ),
  { name: 'no password', user: withPassword({}), errors: [NO_PASSWORD] },
  {
    name: 'the old name of the password',
    user: withPassword({ plaintextPassword: 'bad-users-plain-text' }),
    errors: [NO_PASSWORD],
  },
  { name: 'a hash alone', user: withPassword({ passwordHash: BCRYPT }), errors: [NO_PASSWORD] },
  {
    name: 'an algorithm alone',
    user: withPassword({ hashingAlgorithm: 'bcrypt' }),
    errors: [NO_PASSWORD],
  },
  ...each(
    'algorithm',
    ['md5', 'sha256', 'BCRYPT2', 'firebase-scrypt', '\u00a0bcrypt'].map((name) => [name, name]),
    (hashingAlgorithm) => ({
      user: withPassword({ passwordHash: BCRYPT, hashingAlgorithm }),
      errors: [UNKNOWN_ALGORITHM],
    }),
  ),
  ...each(
    'bcrypt',
    ['$2$10$x', '$1$salt$hash', 'bcrypt', '$2c$10$x', 'x$2a$10$x'].map((hash) => [hash, hash]),
    (passwordHash) => ({
      user: withPassword({ passwordHash, hashingAlgorithm: ' BCrypt ' }),
      errors: [BAD_BCRYPT],
    }),
  ),
  ...each(
    'argon2',
    ['$argon2', '$argon$v=19', '$Argon2id$v=19', BCRYPT].map((hash) => [hash, hash]),
    (passwordHash) => ({
      user: withPassword({ passwordHash, hashingAlgorithm: 'argon2' }),
      errors: [BAD_ARGON2],
    }),
  ),
  {
    name: 'a faulty hash beside a plain password',
    user: withMethod({ ...METHOD, passwordHash: 'nothing', hashingAlgorithm: 'bcrypt' }),
    errors: [BAD_BCRYPT],
  },
  {
    name: 'a hash of 257 characters',
    user: withPassword({ passwordHash: BCRYPT.padEnd(257, 'b'), hashingAlgorithm: 'bcrypt' }),
    errors: ['passwordHash is too long. Max length is 256.'],
  },
  {
    name: 'a hash that is too long and of another form',
    user: withPassword({ passwordHash: LONG, hashingAlgorithm: 'argon2' }),
    errors: ['passwordHash is too long. Max length is 256.', BAD_ARGON2],
  },
  {
    name: 'all faults of a password at once',
    user: withMethod({ recipeId: 'emailpassword', email: LONG_EMAIL, hashingAlgorithm: 'md5' }),
    errors: [NO_PASSWORD, `email ${LONG_EMAIL} is too long. Max length is 256.`, UNKNOWN_ALGORITHM],
  },
  ...['thirdPartyId', 'thirdPartyUserId'].flatMap((name) => [
    ...each(name, NO_TEXTS, (bad) => ({
      user: withMethod({ ...THIRD_PARTY, [name]: bad }),
      errors: [`${name} should be of type string for a thirdparty recipe.`],
    })),
  ]),
  {
    name: 'only the recipe of a third party',
    user: withMethod({ recipeId: 'thirdparty' }),
    errors: [
      'email is required for a thirdparty recipe.',
      'thirdPartyId is required for a thirdparty recipe.',
      'thirdPartyUserId is required for a thirdparty recipe.',
    ],
  },
  {
    name: 'ids of a third party that are too long',
    user: withMethod({
      recipeId: 'thirdparty',
      email: LONG_EMAIL,
      thirdPartyId: LONG_ID,
      thirdPartyUserId: LONG,
    }),
    errors: [
      `email ${LONG_EMAIL} is too long. Max length is 256.`,
      `thirdPartyId ${LONG_ID} is too long. Max length is 28.`,
      `thirdPartyUserId ${LONG} is too long. Max length is 256.`,
    ],
  },
  ...['email', 'phoneNumber'].flatMap((name) =>
    each(`${name} of passwordless`, NO_TEXTS, (bad) => ({
      user: withMethod({ recipeId: 'passwordless', [name]: bad }),
      errors: [`${name} should be of type string for a passwordless recipe.`, NO_LOGIN],
    })),
  ),
  {
    name: 'neither email nor phone number',
    user: withMethod({ recipeId: 'passwordless' }),
    errors: [NO_LOGIN],
  },
  {
    name: 'a faulty email beside a phone number',
    user: withMethod({ recipeId: 'passwordless', email: null, phoneNumber: '+4930123456' }),
    errors: ['email should be of type string for a passwordless recipe.'],
  },
  {
    name: 'a phone number of 257 characters',
    user: withMethod({ recipeId: 'passwordless', phoneNumber: LONG }),
    errors: [`phoneNumber ${LONG} is too long. Max length is 256.`],
  },
]

function articleOf(recipeId: string): string {
  return recipeId.startsWith('e') ? 'an' : 'a'
}
