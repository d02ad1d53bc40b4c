import { expect, it } from 'vitest'
import type { CoreLoginMethod } from '../../../src/migration/core/core-client.js'
import type { ImportLoginMethod } from '../../../src/migration/core/import-user.js'
import { hasLoginOf } from '../../../src/migration/endpoint/judge-request.js'

const account = (...methods: Partial<CoreLoginMethod>[]) => ({
  id: 'u',
  isPrimaryUser: false,
  tenantIds: [],
  timeJoined: 1,
  emails: [],
  phoneNumbers: [],
  thirdParty: [],
  loginMethods: methods.map((method) => ({
    recipeId: 'emailpassword',
    recipeUserId: 'u',
    tenantIds: ['public'],
    verified: true,
    timeJoined: 1,
    ...method,
  })),
})

const PASSWORD: ImportLoginMethod = { recipeId: 'emailpassword', email: ' A@Example.com ' }
const SOCIAL: ImportLoginMethod = {
  recipeId: 'thirdparty',
  email: 'a@example.com',
  thirdPartyId: 'google',
  thirdPartyUserId: '1',
}
const EITHER: ImportLoginMethod = {
  recipeId: 'passwordless',
  email: 'a@example.com',
  phoneNumber: '+4930123456',
}

it.each<[string, ImportLoginMethod[], Partial<CoreLoginMethod>[]]>([
  ['an e-mail address in another case', [PASSWORD], [{ email: 'a@example.com' }]],
  ['one of several', [SOCIAL, PASSWORD], [{ email: 'b@example.com' }, { email: 'a@example.com' }]],
  [
    'a provider’s pair, whatever its e-mail address',
    [SOCIAL],
    [
      {
        recipeId: 'thirdparty',
        email: 'new@example.com',
        thirdParty: { id: 'google', userId: '1' },
      },
    ],
  ],
  ['an e-mail address alone', [EITHER], [{ recipeId: 'passwordless', email: 'a@example.com' }]],
  ['a phone number alone', [EITHER], [{ recipeId: 'passwordless', phoneNumber: '+4930123456' }]],
  [
    'a provider’s pair, of which the core cuts nothing',
    [{ ...SOCIAL, thirdPartyUserId: ' 1 ' }],
    [{ recipeId: 'thirdparty', thirdParty: { id: 'google', userId: ' 1 ' } }],
  ],
])('the same login: %s', (_, wanted, held) => {
  expect(hasLoginOf(account(...held), { loginMethods: wanted })).toBe(true)
})

it.each<[string, ImportLoginMethod[], Partial<CoreLoginMethod>[]]>([
  ['no login at all', [PASSWORD], []],
  [
    'another recipe, though both are linked to others',
    [PASSWORD, SOCIAL],
    [
      { recipeId: 'passwordless', email: 'a@example.com' },
      { recipeId: 'passwordless', phoneNumber: '+4930123456' },
    ],
  ],
  ['another e-mail address', [PASSWORD], [{ email: 'a@example.org' }]],
  [
    'the e-mail address of another pair',
    [SOCIAL],
    [{ recipeId: 'thirdparty', email: 'a@example.com', thirdParty: { id: 'google', userId: '2' } }],
  ],
  ['nothing on both sides', [{ recipeId: 'passwordless' }], [{ recipeId: 'passwordless' }]],
])('another login: %s', (_, wanted, held) => {
  expect(hasLoginOf(account(...held), { loginMethods: wanted })).toBe(false)
})
