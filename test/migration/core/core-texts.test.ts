import { describe, expect, it } from 'vitest'
import {
  isValidationText,
  readRowError,
  withoutRecordValues,
} from '../../../src/migration/core/core-texts.js'

const DUPLICATE = 'duplicate key value violates unique constraint'
const ID = '3f1c0c5e-8a3d-4a36-9a51-0d9a3d2f7c01'

describe('a message of the validation', () => {
  // The others are known by the bad users, of which the recorded core has said them.
  it.each([
    'Role a, b does not exist.',
    'Multitenancy must be enabled before importing users to a different tenant.',
    'externalUserId a is not unique. It is already used by another user.',
    'All tenants for a user must share the same database for passwordless recipe.',
    'Password hash is in invalid Firebase SCrypt format',
  ])('is known as one: %s', (text) => {
    expect(isValidationText(text)).toBe(true)
  })

  it.each([
    'E003: A user with email a@example.com already exists in emailpassword loginMethod.',
    'Role admin does not exist. ERROR: duplicate key',
    'the connection was closed',
    'translated',
    '',
  ])('is not %j', (text) => {
    expect(isValidationText(text)).toBe(false)
  })
})

describe('the error of a row', () => {
  const row = {
    loginMethods: [
      { recipeId: 'thirdparty', email: 'ann@x', thirdPartyId: 'google', thirdPartyUserId: '17' },
    ],
  }
  /** The client returns it without the values of the row. */
  const read = (message: string) => readRowError(withoutRecordValues(message, row))

  it.each([
    [
      'E005: A user with thirdPartyId google and thirdPartyUserId 17 already exists in thirdparty loginMethod.',
      'E005: A user with thirdPartyId google and thirdPartyUserId … already exists in thirdparty loginMethod.',
      'login_taken',
    ],
    [
      `E022: We tried to create the primary user for the userId ${ID} but the account info is already associated with another primary user.`,
      `E022: We tried to create the primary user for the userId ${ID} but the account info is already associated with another primary user.`,
      'login_taken',
    ],
    [
      'E043: Email ann@x is already verified for the user',
      'E043: Email … is already verified for the user',
      'blames_user',
    ],
    [
      `io.supertokens.StorageQueryException: java.sql.BatchUpdateException: Batch entry 0 INSERT INTO x VALUES(('ann@x')) was aborted: ERROR: ${DUPLICATE} "userid_mapping_external_user_id_key"\n  Detail: Key (email)=(ann@x) already exists.`,
      `E031: ${DUPLICATE} "userid_mapping_external_user_id_key"`,
      'blames_user',
    ],
    [
      'java.lang.Exception: E019: Account linking feature is not enabled for this app.',
      'E019: Account linking feature is not enabled for this app.',
      'chunk_failed',
    ],
    [
      `E036: java.sql.BatchUpdateException: Batch entry 0 INSERT INTO totp_user_devices VALUES ((NULL)) was aborted: ERROR: null value in column "device_name" of relation "totp_user_devices" violates not-null constraint\n  Detail: Failing row contains (ann).`,
      'E036: null value in column "device_name"',
      'chunk_failed',
    ],
  ])('has a code: %s', (message, text, kind) => {
    expect(read(message)).toEqual({ code: text.slice(0, 4), text, kind })
  })

  // As core 10.1.8 wrote it into each row of the chunk.
  it.each([
    [
      `java.sql.BatchUpdateException: Batch entry 1 INSERT INTO user_roles VALUES(('bob@x')) was aborted: ERROR: ${DUPLICATE} "user_roles_pkey"`,
      `${DUPLICATE} "user_roles_pkey"`,
    ],
    ['the connection to 17 was closed', 'the connection to … was closed'],
  ])('may be about another row of the chunk: %s', (message, text) => {
    expect(read(message)).toEqual({ code: 'chunk_failed', text, kind: 'chunk_failed' })
  })

  it.each([
    ['role_missing', 'Role gone does not exist., Role other does not exist.'],
    ['tenant_missing', 'Invalid tenantId: t1 for a user role.'],
    ['tenant_missing', 'Invalid tenantId: t1 for passwordless recipe.'],
    ['feature_missing', 'MFA must be enabled to import totp devices.'],
    ['feature_missing', 'Account linking must be enabled to import multiple loginMethods.'],
    [undefined, 'Role gone does not exist., At least one loginMethod is required.'],
  ])('may be a list of messages of the validation, with the code %s: %s', (code, text) => {
    const expected = { ...(code !== undefined && { code }), text, kind: 'validation' }
    expect(read(`[${text}]`)).toEqual(expected)
  })

  it('is short, however many messages it has', () => {
    const texts = Array.from({ length: 100 }, () => 'Role admin does not exist.').join(', ')
    expect(read(`[${texts}]`).text).toHaveLength(500)
  })
})

const RECORD = {
  externalUserId: 'legacy-1',
  userMetadata: { plan: 'admin', nick: "O'Neil", levels: [{ score: 4711 }], source: 'email' },
  userRoles: [{ role: 'admin', tenantIds: ['shop'] }],
  totpDevices: [{ secretKey: 'jbsw', deviceName: 'my phone' }],
  loginMethods: [
    { email: ' Ann@Example', passwordHash: '$1$', plainTextPassword: 'Correct-Horse' },
    { phoneNumber: '+49 (30) 12', thirdPartyUserId: 'google-17' },
  ],
}

/** What the core says; what is left of it. */
const TEXTS: readonly [string, string][] = [
  ['Role google-17 does not exist.', 'Role … does not exist.'],
  ['Role GOOGLE-17-and-more does not exist.', 'Role …-and-more does not exist.'],
  ['Role admin does not exist.', 'Role admin does not exist.'],
  ['externalId legacy-1 already exists', 'externalId legacy-1 already exists'],
  ['A user with email ann@example exists', 'A user with email … exists'],
  ['number +493012 of correct-horse', 'number … of …'],
  ["values ('O''Neil', 4711, 'My Phone')", "values ('…', …, '…')"],
  ['the key jbsw, the hash $1$', 'the key …, the hash …'],
  // What may be of another record.
  ['bob@example.com and <+4930123456>', '… and <…>'],
  [`the userId ${ID} of 2026`, `the userId ${ID} of 2026`],
  ["the hash '$2a$10$N9qo8uLOickgx2ZMRZoMye' is odd", "the hash '…' is odd"],
  ['the hash $f_scrypt$Zm9v==$c2Fs==$m=14$r=8$s=Bw== is odd', 'the hash … is odd'],
  ['TOTP secretKey JBSWY3DPEHPK3PXP is too long.', 'TOTP secretKey … is too long.'],
  [`LoginMethod '{"a":"}' has no tenantId"}' has no tenantId`, "LoginMethod '…' has no tenantId"],
  [`LoginMethod '{"a":"}, {Batch entry 0 bob"}' has no id`, "LoginMethod '…' has no id"],
  ['ERROR: Failing row contains (a, bob)', 'ERROR: …'],
  [
    `X: Batch entry 0 INSERT INTO t VALUES ('${DUPLICATE} "bob"') was aborted: ERROR: ${DUPLICATE} "t_key"\n  Detail: Key (a)=(bob)`,
    `X: … ${DUPLICATE} "t_key" …`,
  ],
]

it.each(TEXTS)('a text without the values of a record: %s', (text, left) => {
  expect(withoutRecordValues(text, RECORD)).toBe(left)
  expect(withoutRecordValues(left, RECORD)).toBe(left)
})

it('a long text takes no more than its length', () => {
  const startedAt = performance.now()
  for (const beginning of ['{', 'a', '1 ', '$a$', 'UPDATE ', 'AAAAAAAAAAAAAAAAa', '@'])
    withoutRecordValues(beginning.repeat(100_000), RECORD)
  expect(performance.now() - startedAt).toBeLessThan(5000)
})
