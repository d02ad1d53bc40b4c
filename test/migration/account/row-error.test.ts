import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readRowError } from '../../../src/migration/account/without-account-data.js'

const ID = '3f1c0c5e-8a3d-4a36-9a51-0d9a3d2f7c01'

describe('the error of a row', () => {
  it.each([
    [
      'E003: A user with email ann@example.com already exists in emailpassword loginMethod.',
      'E003: A user with email … already exists in emailpassword loginMethod.',
    ],
    [
      'E005: A user with thirdPartyId google and thirdPartyUserId 17 already exists in thirdparty loginMethod.',
      'E005: A user with thirdPartyId … and thirdPartyUserId … already exists in thirdparty loginMethod.',
    ],
    [
      'E006: A user with email a, b@c already exists in passwordless loginMethod.',
      'E006: A user with email … already exists in passwordless loginMethod.',
    ],
    [
      'E007: A user with phoneNumber +4930123456 already exists in passwordless loginMethod.',
      'E007: A user with phoneNumber … already exists in passwordless loginMethod.',
    ],
    [
      `E022: We tried to create the primary user for the userId ${ID} but the account info is already associated with another primary user.`,
      `E022: We tried to create the primary user for the userId ${ID} but the account info is already associated with another primary user.`,
    ],
  ])('tells a login that is held, without it: %s', (message, text) => {
    const code = text.slice(0, 4)
    expect(readRowError(message, {})).toEqual({
      code,
      text,
      kind: 'login_taken',
    })
  })

  it.each([
    [
      'E031: A user with externalId ann@x already exists',
      'E031: A user with externalId … already exists',
    ],
    [
      'E034: Role does not exist! You need to pre-create the role before assigning it to the user.',
      'E034: Role does not exist! You need to pre-create the role before assigning it to the user.',
    ],
    [
      'E043: Email ann@example.com is already verified for the user',
      'E043: Email … is already verified for the user',
    ],
    [
      `E011: We tried to add the userId ${ID} to the tenantId shop but another primary user with email ann@x already exists.`,
      `E011: We tried to add the userId ${ID} to the tenantId shop but another primary user with email … already exists.`,
    ],
    [
      'E027: We tried to link the userId +4930123456 to the primary userId a@b.c but the account info is already associated with another primary user.',
      'E027: We tried to link the userId … to the primary userId … but the account info is already associated with another primary user.',
    ],
  ])('blames the user: %s', (message, text) => {
    const code = text.slice(0, 4)
    expect(readRowError(message, {})).toEqual({
      code,
      text,
      kind: 'blames_user',
    })
  })

  it.each([
    ...['E002', 'E004', 'E008', 'E018', 'E019', 'E033', 'E036', 'E037', 'E040'].map((code) => [
      code,
      `${code}: org.postgresql.util.PSQLException: Batch entry 0 INSERT INTO users VALUES ('ann@x')`,
      `${code}: …`,
    ]),
    [
      'E019',
      'java.lang.Exception: E019: Account linking feature is not enabled for this app. Please contact support to enable it.',
      'E019: Account linking feature is not enabled for this app. Please contact support to enable it.',
    ],
    ['E032', 'E032: We tried to map it but the user is gone.', 'E032: …'],
  ])('says nothing of its row where its code blames nobody: %s %s', (code, message, text) => {
    expect(readRowError(message, {})).toEqual({
      code,
      text,
      kind: 'chunk_failed',
    })
  })

  it('may be a list of texts of the validation', () => {
    const message =
      '[Role gone does not exist., email ann@x, is too long. Max length is 256., Invalid recipeId for loginMethod. Pass one of emailpassword, thirdparty or, passwordless!]'
    expect(readRowError(message, {})).toEqual({
      text: 'Role gone does not exist., email … is too long. Max length is 256., Invalid recipeId for loginMethod. Pass one of emailpassword, thirdparty or, passwordless!',
      kind: 'validation',
    })
  })

  it.each([
    ['role_missing', 'Role gone does not exist., Role other does not exist.'],
    ['tenant_missing', 'Invalid tenantId: t1 for a user role.'],
    ['tenant_missing', 'Invalid tenantId: t1 for passwordless recipe.'],
    ['feature_missing', 'MFA must be enabled to import totp devices.'],
    ['feature_missing', 'Account linking must be enabled to import multiple loginMethods.'],
  ])('has the code %s where the texts name what the core lacks: %s', (code, text) => {
    expect(readRowError(`[${text}]`, {})).toEqual({ code, text, kind: 'validation' })
  })

  it.each([
    ['emailpassword_user_to_tenant_email_key', 'E003', 'login_taken'],
    ['thirdparty_user_to_tenant_third_party_user_id_key', 'E005', 'login_taken'],
    ['passwordless_user_to_tenant_email_key', 'E006', 'login_taken'],
    ['prefix_passwordless_user_to_tenant_phone_number_key', 'E007', 'login_taken'],
    ['userid_mapping_external_user_id_key', 'E031', 'blames_user'],
  ])('has the code of the constraint that is violated: %s', (constraint, code, kind) => {
    const duplicate = `duplicate key value violates unique constraint "${constraint}"`
    const message = `io.supertokens.pluginInterface.exceptions.StorageQueryException: java.sql.BatchUpdateException: Batch entry 0 INSERT INTO x VALUES(('ann@x')) was aborted: ERROR: ${duplicate}\n  Detail: Key (email)=(ann@x) already exists.`
    expect(readRowError(message, {})).toEqual({ code, text: `${code}: ${duplicate}`, kind })
  })

  // As core 10.1.8 wrote it into each row of the chunk.
  it.each([
    [
      `java.sql.BatchUpdateException: Batch entry 1 INSERT INTO user_roles VALUES(('ann@x'), ('editor')) was aborted: ERROR: duplicate key value violates unique constraint "user_roles_pkey"`,
      'duplicate key value violates unique constraint "user_roles_pkey"',
    ],
    ['translated', '…'],
    ['the connection was closed', '…'],
  ])('says nothing of its row where its text is not known: %s', (message, text) => {
    expect(readRowError(message, {})).toEqual({ code: 'chunk_failed', text, kind: 'chunk_failed' })
  })

  it('tells no name in which the row has a login', () => {
    const row = { loginMethods: [{ recipeId: 'thirdparty', thirdPartyUserId: 'google-17' }] }
    expect(readRowError('[Role google-17 does not exist.]', row).text).toBe(
      'Role … does not exist.',
    )
  })

  it.each([
    '',
    'ann@example.com',
    'E03: x',
    'e003: A user with email a@b already exists',
    '[ann@x]',
  ])('is cut where its form is not known: %s', (message) => {
    const { text, kind } = readRowError(message, {})
    expect(text).toBe('…')
    expect(kind).toBe(message.startsWith('[') ? 'validation' : 'chunk_failed')
  })

  it('tells no value of a record, even one that is made like a text of the core', () => {
    const forms = [
      (value: string) =>
        `E003: A user with email ${value} already exists in emailpassword loginMethod.`,
      (value: string) =>
        `[externalUserId ${value} is too long. Max length is 128., Role x does not exist.]`,
      (value: string) => `[LoginMethod '${value}' has no tenantId]`,
      (value: string) => `E036: ${value}`,
    ]
    const pieces = fc.constantFrom(
      ...[
        ' is too long. Max length is 128.',
        ', ',
        'Role ',
        ' does not exist.',
        "' has no tenantId",
      ],
      ...[' already exists in emailpassword loginMethod.', 'E003: ', '[', ']', '\n', 'x'],
    )
    const value = fc.array(pieces, { maxLength: 6 }).map((some) => `${some.join('')}@secret`)
    fc.assert(
      fc.property(fc.constantFrom(...forms), value, (form, given) => {
        expect(readRowError(form(given), {}).text).not.toContain('@secret')
      }),
      { numRuns: 500 },
    )
  })
})
