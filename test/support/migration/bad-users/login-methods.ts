import {
  type BadUser,
  each,
  METHOD,
  NO_BOOLEANS,
  NO_INTEGERS,
  NO_LISTS_OF_TEXTS,
  NO_TEXTS,
  PASSWORDLESS,
  THIRD_PARTY,
  withMethod,
} from './bad-user.js'

const UNKNOWN_RECIPE =
  'Invalid recipeId for loginMethod. Pass one of emailpassword, thirdparty or, passwordless!'
const NO_LINKING = 'Account linking must be enabled to import multiple loginMethods.'
const NO_TENANCY = 'Multitenancy must be enabled before importing users to a different tenant.'
const TWO_PRIMARIES = 'No two loginMethods can have isPrimary as true.'
const NO_TENANT = "LoginMethod '…' has no tenantId"
const FUTURE = 'timeJoined cannot be in future for a loginMethod.'
const NEGATIVE = 'timeJoined cannot be < 0 for a loginMethod.'

const withTenants = (...tenantIds: string[]) => withMethod({ ...METHOD, tenantIds })

export const BAD_LOGIN_METHODS: readonly BadUser[] = [
  ...each('recipeId', NO_TEXTS, (recipeId) => ({
    user: withMethod({ ...METHOD, recipeId }),
    errors: ['recipeId should be of type string for a loginMethod.'],
  })),
  {
    name: 'an empty login method',
    user: withMethod({}),
    errors: ['recipeId is required for a loginMethod.'],
  },
  ...each(
    'unknown recipe',
    ['webauthn', 'EmailPassword', ' emailpassword', 'constructor', '__proto__'].map((id) => [
      id,
      id,
    ]),
    (recipeId) => ({ user: withMethod({ ...METHOD, recipeId }), errors: [UNKNOWN_RECIPE] }),
  ),
  ...each('tenantIds', NO_LISTS_OF_TEXTS, (tenantIds) => ({
    user: withMethod({ ...METHOD, tenantIds }),
    errors: ['tenantIds should be of type array of string for a loginMethod.'],
  })),
  ...each('isVerified', NO_BOOLEANS, (isVerified) => ({
    user: withMethod({ ...METHOD, isVerified }),
    errors: ['isVerified should be of type boolean for a loginMethod.'],
  })),
  ...each('isPrimary', NO_BOOLEANS, (isPrimary) => ({
    user: withMethod({ ...METHOD, isPrimary }),
    errors: ['isPrimary should be of type boolean for a loginMethod.'],
  })),
  ...each('timeJoinedInMSSinceEpoch', NO_INTEGERS, (timeJoinedInMSSinceEpoch) => ({
    user: withMethod({ ...METHOD, timeJoinedInMSSinceEpoch }),
    errors: ['timeJoinedInMSSinceEpoch should be of type integer for a loginMethod'],
  })),
  ...each(
    'join time in future',
    [4e12, Number.MAX_SAFE_INTEGER, 2 ** 62].map((time) => [String(time), time]),
    (timeJoinedInMSSinceEpoch) => ({
      user: withMethod({ ...METHOD, timeJoinedInMSSinceEpoch }),
      errors: [FUTURE],
    }),
  ),
  ...each(
    'join time below 0',
    [-1, -1.5, -1e15, 1e19].map((time) => [String(time), time]),
    (timeJoinedInMSSinceEpoch) => ({
      user: withMethod({ ...METHOD, timeJoinedInMSSinceEpoch }),
      errors: [NEGATIVE],
    }),
  ),
  { name: 'an empty list of tenants', user: withTenants(), errors: [NO_TENANT] },
  {
    name: 'another tenant without the feature',
    user: withTenants('known-tenant', 'public'),
    errors: [NO_TENANCY],
    features: 'none',
  },
  {
    name: 'only another tenant without the feature',
    user: withTenants('known-tenant'),
    errors: [NO_TENANCY, NO_TENANT],
    features: 'none',
  },
  {
    name: 'the public tenant with a blank, without the feature',
    user: withTenants('public '),
    errors: [NO_TENANCY, NO_TENANT],
    features: 'none',
  },
  ...[METHOD, THIRD_PARTY, PASSWORDLESS].map((method) => ({
    name: `an unknown tenant of ${method.recipeId}`,
    user: withMethod({ ...method, tenantIds: ['public', 'Stranger'] }),
    errors: [`Invalid tenantId: Stranger for ${method.recipeId} recipe.`],
    features: 'all' as const,
  })),
  {
    name: 'an unknown tenant of no recipe',
    user: withMethod({ tenantIds: ['stranger'] }),
    errors: [
      'recipeId is required for a loginMethod.',
      'Invalid tenantId: stranger for null recipe.',
    ],
    features: 'all',
  },
  {
    name: 'an unknown tenant of an unknown recipe',
    user: withMethod({ recipeId: 'webauthn', tenantIds: ['stranger'] }),
    errors: [UNKNOWN_RECIPE, 'Invalid tenantId: stranger for webauthn recipe.'],
    features: 'all',
  },
  {
    name: 'only unknown tenants',
    user: withTenants('stranger', 'known tenant'),
    errors: [
      'Invalid tenantId: stranger for emailpassword recipe.',
      'Invalid tenantId: known tenant for emailpassword recipe.',
      NO_TENANT,
    ],
    features: 'all',
  },
  {
    name: 'two methods without the feature',
    user: { loginMethods: [METHOD, THIRD_PARTY] },
    errors: [NO_LINKING],
    features: 'none',
  },
  {
    name: 'two empty methods without the feature',
    user: { loginMethods: [{}, {}] },
    errors: [
      NO_LINKING,
      'recipeId is required for a loginMethod.',
      'recipeId is required for a loginMethod.',
    ],
    features: 'none',
  },
  {
    name: 'two primary methods',
    user: { loginMethods: [METHOD, THIRD_PARTY].map((each) => ({ ...each, isPrimary: true })) },
    errors: [TWO_PRIMARIES],
    features: 'all',
  },
  {
    name: 'three primary methods and a faulty one',
    user: {
      loginMethods: [METHOD, THIRD_PARTY, PASSWORDLESS, { ...METHOD, isPrimary: 1 }].map(
        (each) => ({ isPrimary: true, ...each }),
      ),
    },
    errors: [
      TWO_PRIMARIES,
      TWO_PRIMARIES,
      'isPrimary should be of type boolean for a loginMethod.',
    ],
    features: 'all',
  },
  {
    name: 'all common members of a wrong type',
    user: withMethod({
      timeJoinedInMSSinceEpoch: '',
      isPrimary: 0,
      isVerified: 0,
      tenantIds: 0,
      recipeId: 0,
    }),
    errors: [
      'recipeId should be of type string for a loginMethod.',
      'tenantIds should be of type array of string for a loginMethod.',
      'isVerified should be of type boolean for a loginMethod.',
      'isPrimary should be of type boolean for a loginMethod.',
      'timeJoinedInMSSinceEpoch should be of type integer for a loginMethod',
    ],
  },
]
