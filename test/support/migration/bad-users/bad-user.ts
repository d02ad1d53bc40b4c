/** The tenants and roles that the core must have for these users. */
export const KNOWN = {
  tenants: ['public', 'known-tenant', 'other-tenant'],
  roles: ['known-role'],
} as const

export const ALL_FEATURES = ['account_linking', 'multi_tenancy', 'mfa'] as const

/** A user that the core refuses. */
export interface BadUser {
  readonly name: string
  readonly user: unknown
  /** All error texts of the core, in its order; `…` stands for a secret or a whole record. */
  readonly errors: readonly string[]
  /** Whether the core must have all features of `ALL_FEATURES` or none; absent if it does not matter. */
  readonly features?: 'all' | 'none'
  /** The core answers 500, so that only the validation of the package gives these texts. */
  readonly isFault?: true
}

export const METHOD = {
  recipeId: 'emailpassword',
  email: 'ann@example.com',
  plainTextPassword: 'bad-users-plain-text',
}
export const THIRD_PARTY = {
  recipeId: 'thirdparty',
  email: 'ann@example.com',
  thirdPartyId: 'google',
  thirdPartyUserId: 'google-1',
}
export const PASSWORDLESS = { recipeId: 'passwordless', email: 'ann@example.com' }

export const withMembers = (members: object) => ({ loginMethods: [METHOD], ...members })
export const withMethod = (method: object) => ({ loginMethods: [method] })

/** Values that the core does not accept as a text. */
export const NO_TEXTS: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['a number', 42],
  ['a boolean', false],
  ['an empty text', ''],
  ['blanks', ' \t\n'],
  ['a wide space', '\u3000\u2028'],
  ['a list', ['text']],
  ['an object', { text: 'text' }],
]
export const NO_OBJECTS: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['a text', 'text'],
  ['a number', 1],
  ['a boolean', true],
  ['a list', []],
]
export const NO_LISTS_OF_OBJECTS: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['a text', 'text'],
  ['an object', {}],
  ['a list with null', [null]],
  ['a list with a text', [{}, 'text']],
  ['a list with a list', [[]]],
]
export const NO_LISTS_OF_TEXTS: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['a text', 'public'],
  ['an object', {}],
  ['a list with null', ['public', null]],
  ['a list with a number', [1]],
  ['a list with an empty text', ['']],
  ['a list with blanks', ['  ']],
]
export const NO_INTEGERS: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['a text', '30'],
  ['a boolean', true],
  ['a list', [1]],
  ['an object', {}],
]
export const NO_BOOLEANS: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['a text', 'true'],
  ['a number', 1],
  ['an object', {}],
]

/** Makes a bad user for each value. */
export function each(
  name: string,
  values: readonly (readonly [string, unknown])[],
  bad: (value: unknown) => Omit<BadUser, 'name'>,
): BadUser[] {
  return values.map(([what, value]) => ({ name: `${name}: ${what}`, ...bad(value) }))
}
