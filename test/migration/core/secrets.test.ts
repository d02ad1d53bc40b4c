import { inspect } from 'node:util'
import { afterAll, expect, it } from 'vitest'
import type { CoreClient } from '../../../src/migration/core/core-client.js'
import { cutSecrets } from '../../../src/migration/core/cut-secrets.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { knowSecret, recordOutput } from '../../support/secret-search/index.js'
import { API_KEY, ok, type Reply, replies, startScriptedCore } from './scripted-core.js'

const HASH = '$argon2id$v=19$m=65536,t=2,p=1$c2FsdHNhbHQ$aGFzaG9mdGhlcGFzc3dvcmQ'
const OTHERS_HASH = '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy'
const FIREBASE_HASH = '$f_scrypt$Zm9vYmFyaGFzaA==$c2FsdA==$m=14$r=8$s=Bw=='
// They hold what the core writes behind them.
const WORDS = 'correct-horse-battery-staple'
const PASSWORD = `${WORDS}' has no tenantId`
const KEY_LETTERS = 'JBSWY3DPEHPK3PXP'
const TOTP_KEY = `${KEY_LETTERS} is too long.`
const SECRETS = [API_KEY, HASH, OTHERS_HASH, FIREBASE_HASH, WORDS, KEY_LETTERS]

const USER: ImportUser = {
  externalUserId: 'legacy-1',
  totpDevices: [{ secretKey: TOTP_KEY, deviceName: 'phone' }],
  loginMethods: [
    { recipeId: 'emailpassword', email: 'a@example.com', passwordHash: HASH },
    { recipeId: 'emailpassword', email: 'b@example.com', plainTextPassword: PASSWORD },
  ],
}
const METHOD = JSON.stringify(USER.loginMethods[1])

const QUOTED_BY_DATABASE = `Batch entry 0 INSERT INTO totp_user_devices VALUES ('u','${OTHERS_HASH}') was aborted: ERROR: null value Detail: Failing row contains (public, ${PASSWORD}).`

/** What the core says; what is left of it. */
const TEXTS: readonly [string, string][] = [
  [`LoginMethod '${METHOD}' has no tenantId`, "LoginMethod '…' has no tenantId"],
  [
    `TOTP secretKey ${TOTP_KEY} is too long. Max length is 256.`,
    'TOTP secretKey … is too long. Max length is 256.',
  ],
  [`E036: ${QUOTED_BY_DATABASE}`, 'E036: …'],
  [QUOTED_BY_DATABASE, '…'],
  [
    `java.sql.BatchUpdateException: Batch entry 0 INSERT INTO thirdparty_user_to_tenant VALUES ('${PASSWORD}') was aborted: ERROR: duplicate key value violates unique constraint "thirdparty_user_to_tenant_third_party_user_id_key"  Detail: Key (a)=(${PASSWORD})`,
    'java.sql.BatchUpdateException: … duplicate key value violates unique constraint "thirdparty_user_to_tenant_third_party_user_id_key" …',
  ],
  [`ERROR: Failing row contains (a, ${TOTP_KEY})`, 'ERROR: …'],
  [`the hash '${OTHERS_HASH}' is odd`, "the hash '…' is odd"],
  [`the hash "${FIREBASE_HASH}" is odd`, 'the hash "…" is odd'],
  [`the hash ${HASH} is odd`, 'the hash … is odd'],
  [`a word: ${PASSWORD}, a key: ${TOTP_KEY}`, 'a word: …, a key: …'],
  [
    'E003: A user with email a@example.com already exists in emailpassword loginMethod.',
    'E003: A user with email a@example.com already exists in emailpassword loginMethod.',
  ],
  ['Password hash is in invalid BCrypt format', 'Password hash is in invalid BCrypt format'],
  [
    "[role x is too long. Max length is 255., LoginMethod '{}' has no tenantId]",
    "[role x is too long. Max length is 255., LoginMethod '…' has no tenantId]",
  ],
]

let reply: Reply

const core = await startScriptedCore(() => reply)
afterAll(() => core.close())

const know = (): void => {
  knowSecret('an API key', API_KEY)
  for (const secret of SECRETS.slice(1)) knowSecret('a password', secret)
}

/** Looks at a result in every way in which it may come out. */
function searched<T>(result: T): T {
  const shown = `${inspect(result, { depth: 9, showHidden: true })}${JSON.stringify(result)}`
  recordOutput('a result', shown)
  for (const secret of SECRETS) expect(shown).not.toContain(secret)
  for (const part of ['horse', 'JBSWY3', 'aGFzaG', 'N9qo8u', 'Zm9vYm', 'c2FsdA']) {
    expect(shown).not.toContain(part)
  }
  return result
}

it.each(TEXTS)('a text that quotes a record is cut: %s', async (given, left) => {
  know()
  reply = replies(400, { error: 'x', users: [{ index: 0, errors: [given] }] })
  expect(searched(await core.client().stageUsers([USER]))).toEqual({
    outcome: 'rejected',
    users: [{ index: 0, errors: [left] }],
  })
  reply = replies(400, { errors: [given] })
  expect(searched(await core.client().importUser(USER))).toEqual({
    outcome: 'rejected',
    errors: [left],
  })
  const row = { ...USER, id: 'r', status: 'FAILED', createdAt: 1, updatedAt: 1 }
  reply = ok({ users: [{ ...row, errorMessage: given }] })
  const { users } = searched(await core.client().listRows())
  expect(users[0]?.errorMessage).toBe(left)
})

it('a long text that only begins to quote is read in no time', () => {
  const startedAt = performance.now()
  for (const beginning of ["LoginMethod '", 'TOTP secretKey ']) {
    const text = beginning.repeat(20_000)
    expect(cutSecrets(text, [])).toBe(text)
  }
  expect(performance.now() - startedAt).toBeLessThan(1000)
})

it('a row loses its secrets, and what the schemas do not name', async () => {
  know()
  const row = {
    ...USER,
    userMetadata: { plan: 'pro' },
    userRoles: [{ role: 'admin', tenantIds: ['public'] }],
    ...{ id: 'core-1', status: 'FAILED', createdAt: 1, updatedAt: 2, errorMessage: 'E022: x' },
    raw_data: JSON.stringify(USER),
  }
  reply = ok({ users: [row] })
  const client = core.client()
  const expected = {
    ...{ id: 'core-1', status: 'FAILED', createdAt: 1, updatedAt: 2, errorMessage: 'E022: x' },
    externalUserId: 'legacy-1',
    userMetadata: { plan: 'pro' },
    userRoles: [{ role: 'admin', tenantIds: ['public'] }],
    totpDevices: [{ deviceName: 'phone' }],
    loginMethods: [
      { recipeId: 'emailpassword', email: 'a@example.com' },
      { recipeId: 'emailpassword', email: 'b@example.com' },
    ],
  }
  expect(searched(await client.listRows()).users).toEqual([expected])
  for await (const each of client.rows()) expect(searched(each)).toEqual(expected)
})

const CALLS: readonly [string, (client: CoreClient) => Promise<unknown>][] = [
  ['staging', (client) => client.stageUsers([USER])],
  ['direct import', (client) => client.importUser(USER)],
  ['the list', (client) => client.listRows()],
  ['a look-up', (client) => client.user('legacy-1')],
]

it.each(CALLS)(
  'no error of %s quotes what was sent or came back',
  async (_, call) => {
    know()
    const everything = `${API_KEY} ${JSON.stringify(USER)} ${OTHERS_HASH}`
    for (const status of [200, 201, 302, 400, 401, 403, 404, 413, 500]) {
      reply = replies(status, everything)
      const error: unknown = await call(core.client()).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ name: 'CoreError' })
      expect((error as Error).cause).toBeUndefined()
      searched(error)
      searched((error as Error).stack)
    }
  },
  10_000,
)

it('no error of a fetch is passed on', async () => {
  know()
  const failing = async () => {
    throw new Error(`${API_KEY} ${HASH}`, { cause: { headers: { 'api-key': API_KEY } } })
  }
  const client = core.client({ fetch: failing })
  const error: unknown = await client.stageUsers([USER]).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'unreachable', outcome: 'unknown' })
  searched(error)
})
