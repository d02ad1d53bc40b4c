import { inspect } from 'node:util'
import { expect, it } from 'vitest'
import type { CoreClient } from '../../../src/migration/core/core-client.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { knowSecret, recordOutput } from '../../support/secret-search/index.js'
import { API_KEY, ok, type Reply, replies, startScriptedCore } from './scripted-core.js'

const HASH = '$argon2id$v=19$m=65536,t=2,p=1$c2FsdHNhbHQ$aGFzaG9mdGhlcGFzc3dvcmQ'
const OTHERS_HASH = '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy'
const PASSWORD = 'correct-horse-battery-staple'
const TOTP_KEY = 'JBSWY3DPEHPK3PXP'
const SECRETS = [API_KEY, HASH, OTHERS_HASH, PASSWORD, TOTP_KEY]

const USER: ImportUser = {
  externalUserId: 'legacy-1',
  totpDevices: [{ secretKey: TOTP_KEY, deviceName: 'phone' }],
  loginMethods: [
    { recipeId: 'emailpassword', email: 'a@example.com', passwordHash: HASH },
    { recipeId: 'emailpassword', email: 'b@example.com', plainTextPassword: PASSWORD },
  ],
}
let reply: Reply

const core = await startScriptedCore(() => reply)

const know = (): void => {
  knowSecret('an API key', API_KEY)
  for (const secret of SECRETS.slice(1)) knowSecret('a password', secret)
}

/** Looks at a result in every way in which it may come out. */
function searched<T>(result: T): T {
  const shown = `${inspect(result, { depth: 9, showHidden: true })}${JSON.stringify(result)}`
  recordOutput('a result', shown)
  for (const secret of SECRETS) expect(shown).not.toContain(secret)
  for (const part of ['horse', 'JBSWY3', 'aGFzaG', 'N9qo8u']) {
    expect(shown).not.toContain(part)
  }
  return result
}

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
