import { expect, it } from 'vitest'
import type { CoreLoginMethod } from '../../../src/migration/core/core-client.js'
import type { ImportLoginMethod } from '../../../src/migration/core/import-user.js'
import { hasLoginOf } from '../../../src/migration/endpoint/judge-request.js'

const ACCOUNT = {
  id: 'u',
  isPrimaryUser: false,
  tenantIds: [],
  timeJoined: 1,
  emails: [],
  phoneNumbers: [],
  thirdParty: [],
}
const METHOD = { recipeUserId: 'u', tenantIds: ['public'], verified: true, timeJoined: 1 }

const [email, phoneNumber] = ['a@example.com', '+4930123456']
const GOOGLE = { thirdPartyId: 'google', thirdPartyUserId: '1' }
const PASSWORD: ImportLoginMethod = { recipeId: 'emailpassword', email: ' A@Example.com ' }
const SOCIAL: ImportLoginMethod = { recipeId: 'thirdparty', email, ...GOOGLE }
const EITHER: ImportLoginMethod = { recipeId: 'passwordless', email, phoneNumber }

type Held = Partial<CoreLoginMethod>
const password = (address: string): Held => ({ recipeId: 'emailpassword', email: address })
const link = (more: Held): Held => ({ recipeId: 'passwordless', ...more })
const social = (userId: string, address = email): Held => ({
  recipeId: 'thirdparty',
  email: address,
  thirdParty: { id: 'google', userId },
})

it.each<[string, isHeld: boolean, ImportLoginMethod[], Held[]]>([
  ['one of several', true, [SOCIAL, PASSWORD], [password('b@example.com'), password(email)]],
  ['a provider’s pair, whatever its address', true, [SOCIAL], [social('1', 'new@example.com')]],
  ['a phone number alone', true, [EITHER], [link({ phoneNumber })]],
  ['another recipe', false, [PASSWORD, SOCIAL], [link({ email }), link({ phoneNumber })]],
  ['another tenant', false, [{ ...PASSWORD, tenantIds: ['tenant-a'] }], [password(email)]],
  ['the e-mail address of another pair', false, [SOCIAL], [social('2')]],
  ['nothing on both sides', false, [{ recipeId: 'passwordless' }], [link({})]],
])('an account with the login of a record: %s', (_, isHeld, loginMethods, held) => {
  const methods = held.map((method) => ({ recipeId: '', ...METHOD, ...method }))
  expect(hasLoginOf({ ...ACCOUNT, loginMethods: methods }, { loginMethods })).toBe(isHeld)
})
