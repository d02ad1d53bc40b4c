import { randomBytes } from 'node:crypto'
import { argon2id, bcrypt } from 'hash-wasm'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { signIn } from '../core-client.js'
import { person, withPassword, withProvider } from '../people.js'
import { type StandInCore, startStandInCore } from '../stand-in-core.js'

/** Published by the core's own tests, with the hash below. */
const FIREBASE_SIGNER_KEY =
  'gRhC3eDeQOdyEn4bMd9c6kxguWVmcIVq/SKa0JDPFeM6TcEevkaW56sIWfx88OHbJKnCXdWscZx0l2WbCJ1wbg=='
const FIREBASE_PASSWORD = 'testPass123'
const FIREBASE_HASH =
  '$f_scrypt$qZM035es5AXYqavsKD6/rhtxg7t5PhcyRgv5blc3doYbChX8keMfQLq1ra96O2Pf2TP/eZrR5xtPCYN6mX3ESA==$/cj0jC1br5o4+w==$m=14$r=8$s=Bw=='
const PASSWORD = 'pässwörd-👩🏽‍🚀'
/** bcrypt ignores the last letters. */
const LONG_PASSWORD = 'x'.repeat(80)
const WRONG = { status: 200, body: { status: 'WRONG_CREDENTIALS_ERROR' } }

let core: StandInCore
beforeAll(async () => {
  const tenants = [{ tenantId: 'shop', thirdPartyIds: [] }]
  core = await startStandInCore({ firebaseSignerKey: FIREBASE_SIGNER_KEY, tenants })
})
afterAll(() => core.close())

/** The user as the core shows it. */
async function imported(user: object): Promise<{ id: string; emails: string[] }> {
  const response = await fetch(`${core.url}/bulk-import/import`, {
    method: 'POST',
    headers: { 'api-key': core.apiKey, 'content-type': 'application/json; charset=utf-8' },
    body: JSON.stringify(user),
  })
  const answer = JSON.parse(await response.text())
  expect(answer.status).toBe('OK')
  return answer.user
}

const hashed = (passwordHash: string, hashingAlgorithm: string) => ({
  passwordHash,
  hashingAlgorithm,
})
const bcryptOf = async (password: string, version = '$2a') => {
  const options = { salt: randomBytes(16), costFactor: 4, outputType: 'encoded' } as const
  const hash = await bcrypt({ ...options, password: Buffer.from(password).subarray(0, 72) })
  return hashed(hash.replace('$2a', version), 'bcrypt')
}
const argon2Of = async (password: string) => {
  const cost = { parallelism: 1, iterations: 1, memorySize: 8, hashLength: 32 }
  const salt = randomBytes(16)
  return hashed(await argon2id({ ...cost, salt, password, outputType: 'encoded' }), 'argon2')
}

it.each([
  ['a plain password', PASSWORD, { plainTextPassword: PASSWORD }],
  ['a hash of bcrypt', PASSWORD, await bcryptOf(PASSWORD)],
  ['a hash of PHP', PASSWORD, await bcryptOf(PASSWORD, '$2y')],
  ['a hash of old PHP', PASSWORD, await bcryptOf(PASSWORD, '$2x')],
  ['a hash of a long password', LONG_PASSWORD, await bcryptOf(LONG_PASSWORD)],
  ['a hash of Argon2', PASSWORD, await argon2Of(PASSWORD)],
  ['a hash of Firebase', FIREBASE_PASSWORD, hashed(FIREBASE_HASH, 'firebase_scrypt')],
])('signs in whoever was imported with %s, and with no other password', async (_, password, by) => {
  const hash = { passwordHash: undefined, hashingAlgorithm: undefined }
  const base = person()
  const email = `${base.externalUserId}@example.com`
  const user = await imported({ ...base, loginMethods: [withPassword(email, { ...hash, ...by })] })
  expect(await signIn(core, { email: ` ${email.toUpperCase()}`, password })).toEqual({
    status: 200,
    body: { status: 'OK', user, recipeUserId: base.externalUserId },
  })
  expect(await signIn(core, { email, password: `y${password}` })).toEqual(WRONG)
  expect(await signIn(core, { email, password: '' })).toEqual(WRONG)
})

it('names the method of a linked user by its own id, and serves each tenant', async () => {
  const base = person()
  const email = `${base.externalUserId}@example.com`
  const tenantIds = ['shop']
  const loginMethods = [
    withProvider(email, { isPrimary: true, tenantIds }),
    withPassword(email, { ...(await bcryptOf(PASSWORD)), tenantIds }),
  ]
  const user = await imported({ ...base, loginMethods })
  const below = { ...core, url: `${core.url}/appid-public/shop` }
  const { body } = await signIn(below, { email, password: PASSWORD })
  expect(body).toMatchObject({ status: 'OK', user })
  expect(
    core.tables.accounts.get(core.tables.coreIds.get(user.id) ?? '')?.methods[1],
  ).toMatchObject({
    superTokensUserId: body.recipeUserId,
  })
  expect(await signIn(core, { email, password: PASSWORD })).toEqual(WRONG)
})

it('signs in nobody by an unknown address, an incomplete hash or without a password', async () => {
  const incomplete = person()
  const [email = ''] = (await imported(incomplete)).emails
  const byProvider = await imported(
    person({
      loginMethods: [withProvider(`google-${randomBytes(4).toString('hex')}@example.com`)],
    }),
  )
  for (const known of [email, ...byProvider.emails, 'nobody@example.com']) {
    expect(await signIn(core, { email: known, password: PASSWORD })).toEqual(WRONG)
  }
})

it.each([
  ['{', 'Invalid Json Input\n'],
  [{ password: PASSWORD }, "Field name 'email' is invalid in JSON input\n"],
  [{ email: 'a@example.com' }, "Field name 'password' is invalid in JSON input\n"],
  [{ email: 7, password: 7 }, "Field name 'email' is invalid in JSON input\n"],
  [{ email: 'a@example.com', password: null }, "Field name 'password' is invalid in JSON input\n"],
])('answers 400 to %j', async (body, text) => {
  expect(await signIn(core, body)).toEqual({ status: 400, body: text })
})

it('answers 400 below a tenant that does not exist', async () => {
  const below = { ...core, url: `${core.url}/nowhere` }
  const { status, body } = await signIn(below, { email: 'a@example.com', password: 'x' })
  expect([status, body]).toEqual([400, expect.stringMatching(/^AppId or tenantId not found => /)])
})
