import { describe, expect, it } from 'vitest'
import { errorCodeOf } from '../../../src/migration/core/core-messages.js'
import { cutSecrets } from '../../../src/migration/core/cut-secrets.js'
import { isValidationText } from '../../../src/migration/core/known-texts.js'
import { BAD_USERS } from '../../support/migration/bad-users/index.js'

/** What the core says of a record that it cannot read as one. */
const OTHERS = ['Invalid Json Input', 'A user should be of type object.']

const DUPLICATE = 'duplicate key value violates unique constraint'

const texts = [...new Set(BAD_USERS.flatMap(({ errors }) => errors))].filter(
  (text) => !OTHERS.includes(text),
)

describe('a text of the core’s validation', () => {
  it.each(texts)('is known as one, and cut no further: %s', (text) => {
    expect([isValidationText(text), cutSecrets(text, [])]).toEqual([true, text])
  })
})

it.each([
  'E003: A user with email a@example.com already exists in emailpassword loginMethod.',
  'Role admin does not exist. ERROR: duplicate key',
  'the connection was closed',
  '',
])('%j is none', (text) => {
  expect(isValidationText(text)).toBe(false)
})

it.each([
  ['E003: A user', 'E003'],
  ['java.lang.Exception: E019: Account', 'E019'],
  ['io.supertokens.X$Y: java.lang.Exception: E019: Account', 'E019'],
  [`java.sql.X: … ${DUPLICATE} "passwordless_user_to_tenant_email_key" …`, 'E006'],
  [`ERROR: ${DUPLICATE} "prefix_userid_mapping_external_user_id_key"`, 'E031'],
  [`ERROR: ${DUPLICATE} "all_auth_recipe_users_pkey"`, undefined],
  ['Role E003: x does not exist.', undefined],
  ['a b: E003: x', undefined],
  ['E003 x', undefined],
  ['E0031: x', undefined],
])('the code of %j is %s', (text, code) => {
  expect(errorCodeOf(text)).toBe(code)
})
