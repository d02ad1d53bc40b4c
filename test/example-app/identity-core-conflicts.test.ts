import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CoreVersion } from '../../example-app/identity-core/interface-version.js'
import { person, phoneNumber, withPassword, withPhone, withProvider } from '../core/people.js'
import {
  accountsByExternalId,
  runJobToEnd,
  type StandInCore,
  startStandInCore,
} from '../support/core/stand-in-core.js'

interface Person {
  readonly externalUserId: string
  readonly loginMethods: readonly object[]
}

const cores = new Map<CoreVersion, StandInCore>()
const VERSIONS = ['10.1', '11.4'] as const

beforeAll(async () => {
  for (const version of VERSIONS) {
    const tenants = [{ tenantId: 'shop', thirdPartyIds: [] }]
    cores.set(version, await startStandInCore({ version, tenants, roles: ['editor'] }))
  }
})
afterAll(async () => {
  for (const core of cores.values()) await core.close()
})

function coreOf(version: CoreVersion): StandInCore {
  const core = cores.get(version)
  if (core === undefined) throw new Error(`no core of version ${version} was started`)
  return core
}

async function post({ url, apiKey }: StandInCore, path: string, body: object) {
  const headers = { 'api-key': apiKey, 'content-type': 'application/json; charset=utf-8' }
  const sent = { method: 'POST', headers, body: JSON.stringify(body) }
  const response = await fetch(`${url}${path}`, sent)
  return { status: response.status, json: await response.json() }
}

/** What the job makes of rows: an account, or a row with its status and text. */
async function imported(core: StandInCore, users: readonly Person[]) {
  expect((await post(core, '/bulk-import/users', { users })).status).toBe(200)
  await runJobToEnd(core)
  const accounts = await accountsByExternalId(core)
  const rows = await core.query<{ raw_data: string; status: string; error_msg: string | null }>(
    'select raw_data, status, error_msg from bulk_import_users',
  )
  await core.query('delete from bulk_import_users')
  const left = new Map(rows.map((row) => [JSON.parse(row.raw_data).externalUserId, row]))
  return users.map(({ externalUserId }) => {
    const row = left.get(externalUserId)
    if (row === undefined) return accounts.has(externalUserId) ? 'account' : 'nothing'
    return row.error_msg === null ? row.status : `${row.status} ${row.error_msg}`
  })
}

const ANY_ID = '[0-9a-f-]{36}'
const STORAGE = 'io.supertokens.pluginInterface.exceptions.StorageQueryException'

function escaped(text: string): RegExp {
  const literal = text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return new RegExp(`^${literal.replaceAll('<id>', ANY_ID).replaceAll('<ms>', '\\d+')}$`)
}

/** As recorded: the error of the database for the values of a statement. */
function batch(statement: string, error: string, entry = 0): string {
  return `java.sql.BatchUpdateException: Batch entry ${entry} ${statement} was aborted: ERROR: ${error}  Call getNextException to see other errors in the batch.`
}

const email = `taken-${Date.now()}@example.com`
const number = phoneNumber()
const provider = withProvider('of-provider@example.com')
const providerUserId = provider.thirdPartyUserId

const passwordless = (column: string, values: string, value: string) =>
  `${STORAGE}: ${batch(
    `INSERT INTO passwordless_user_to_tenant(app_id, tenant_id, user_id, email, phone_number) VALUES(('public'), ('public'), ('<id>'), ${values})`,
    `duplicate key value violates unique constraint "passwordless_user_to_tenant_${column}_key"\n  Detail: Key (app_id, tenant_id, ${column})=(public, public, ${value}) already exists.`,
  )}`

const thirdParty = `${STORAGE}: ${batch(
  `INSERT INTO thirdparty_user_to_tenant(app_id, tenant_id, user_id, third_party_id, third_party_user_id) VALUES(('public'), ('public'), ('<id>'), ('google'), ('${providerUserId}'))`,
  `duplicate key value violates unique constraint "thirdparty_user_to_tenant_third_party_user_id_key"\n  Detail: Key (app_id, tenant_id, third_party_id, third_party_user_id)=(public, public, google, ${providerUserId}) already exists.`,
)}`

const E003 = `E003: A user with email ${email} already exists in emailpassword loginMethod.`
const E006 = `E006: A user with email ${email} already exists in passwordless loginMethod.`
const E007 = `E007: A user with phoneNumber ${number} already exists in passwordless loginMethod.`

/** What another account holds, what direct import says then, and whether the row fails. */
const TAKEN: readonly [string, CoreVersion, object, string, boolean][] = [
  ['an address with a password', '10.1', withPassword(email), E003, true],
  ['an address with a password', '11.4', withPassword(email), E003, true],
  [
    'an address without a password',
    '10.1',
    { recipeId: 'passwordless', email },
    passwordless('email', `('${email}'), (NULL)`, email),
    false,
  ],
  ['an address without a password', '11.4', { recipeId: 'passwordless', email }, E006, true],
  [
    'a number',
    '10.1',
    withPhone(number),
    passwordless('phone_number', `(NULL), ('${number}')`, number),
    false,
  ],
  ['a number', '11.4', withPhone(number), E007, true],
  ['a user of a provider', '10.1', provider, thirdParty, false],
  ['a user of a provider', '11.4', provider, 'translated', false],
]

describe.each(TAKEN)('%s that is taken, to core %s', (_, version, login, text, isNamed) => {
  const loginMethods = [login]

  it('is refused by direct import, and makes a row fail or stay for good', async () => {
    const core = coreOf(version)
    await post(core, '/bulk-import/import', person({ loginMethods }))
    const { status, json } = await post(core, '/bulk-import/import', person({ loginMethods }))
    expect(status).toBe(400)
    expect(json).toEqual({ errors: [expect.stringMatching(escaped(text))] })

    const [bad, innocent, other] = await imported(core, [
      person({ loginMethods }),
      person(),
      person(),
    ])
    expect(other).toBe('account')
    expect({ bad, innocent }).toEqual(
      isNamed
        ? { bad: `FAILED ${text}`, innocent: 'account' }
        : { bad: 'PROCESSING', innocent: 'PROCESSING' },
    )
  })
})

describe.each(VERSIONS)('core %s', (version) => {
  it('takes an external id that is taken for a fault of its database', async () => {
    const core = coreOf(version)
    const known = person()
    await post(core, '/bulk-import/import', known)
    const { externalUserId } = known
    const { json } = await post(core, '/bulk-import/import', person({ externalUserId }))
    const text = `${STORAGE}: ${batch(
      `INSERT INTO userid_mapping (app_id, supertokens_user_id, external_user_id) VALUES(('public'), ('<id>'), ('${externalUserId}'))`,
      `duplicate key value violates unique constraint "userid_mapping_external_user_id_key"\n  Detail: Key (app_id, external_user_id)=(public, ${externalUserId}) already exists.`,
    )}`
    expect(json).toEqual({ errors: [expect.stringMatching(escaped(text))] })
    const rows = await imported(core, [person({ externalUserId }), person()])
    expect(rows).toEqual(['PROCESSING', 'PROCESSING'])
  })

  it.each([
    ['a role twice', [['public'], ['public']]],
    ['a tenant twice in a role', [['public', 'public']]],
  ])('fails all beside %s', async (_, tenants) => {
    const core = coreOf(version)
    const userRoles = tenants.map((tenantIds) => ({ role: 'editor', tenantIds }))
    const bad = person({ userRoles })
    const text = `${STORAGE}: ${batch(
      `INSERT INTO user_roles(app_id, tenant_id, user_id, role) VALUES(('public'), ('public'), ('${bad.externalUserId}'), ('editor'))`,
      `duplicate key value violates unique constraint "user_roles_pkey"\n  Detail: Key (app_id, tenant_id, user_id, role)=(public, public, ${bad.externalUserId}, editor) already exists.`,
      1,
    )}`
    const { status, json } = await post(core, '/bulk-import/import', bad)
    const javaClass = 'io.supertokens.pluginInterface.exceptions.StorageTransactionLogicException'
    expect({ status, json }).toEqual({ status: 400, json: { errors: [`${javaClass}: ${text}`] } })
    const rows = await imported(core, [bad, person(), person()])
    expect(rows).toEqual([`FAILED ${text}`, `FAILED ${text}`, 'account'])
  })

  it('links the methods of a user without a primary one, as if the oldest were', async () => {
    const core = coreOf(version)
    const address = `several-${Date.now()}@example.com`
    const login = withPassword(address)
    const user = person({ loginMethods: [withProvider(address), login] })
    const [state] = await imported(core, [user])
    expect(state).toBe('account')
    const path = `${core.url}/user/id?userId=${user.externalUserId}`
    const response = await fetch(path, { headers: { 'api-key': core.apiKey } })
    const methods = [
      { recipeId: 'emailpassword', recipeUserId: user.externalUserId },
      { recipeId: 'thirdparty' },
    ]
    expect(await response.json()).toMatchObject({
      user: { id: user.externalUserId, isPrimaryUser: true, loginMethods: methods },
    })
  })

  it('makes two primary users of one address in a chunk, and refuses a third', async () => {
    const core = coreOf(version)
    const address = `primary-${Date.now()}@example.com`
    const isPrimary = true
    const first = person({ loginMethods: [withPassword(address, { isPrimary })] })
    const second = person({ loginMethods: [withProvider(address, { isPrimary })] })
    expect(await imported(core, [first, second])).toEqual(['account', 'account'])
    const third = person({ loginMethods: [withProvider(address, { isPrimary })] })
    const [row] = await imported(core, [third])
    expect(row).toMatch(/^FAILED E022: We tried to create the primary user for the userId /)
  })

  it('names each login that another account holds in a further tenant', async () => {
    const core = coreOf(version)
    const address = `tenant-${Date.now()}@example.com`
    const inShop = withPassword(address, { tenantIds: ['shop'] })
    await post(core, '/bulk-import/import', person({ loginMethods: [inShop] }))
    const inBoth = withPassword(address, { tenantIds: ['public', 'shop'] })
    const [row] = await imported(core, [person({ loginMethods: [inBoth] })])
    expect(row).toMatch(
      escaped(
        `FAILED E014: We tried to add the userId <id> to the tenantId shop but another user with email ${address} already exists.`,
      ),
    )
  })
})

const NUL = 'a\0b'
const unstorable = (parameter: number) =>
  `invalid byte sequence for encoding "UTF8": 0x00\n  Where: unnamed portal parameter $${parameter}`

describe('a NUL', () => {
  it.each<[string, object]>([
    ['an external id', { externalUserId: NUL }],
    ['an address', { loginMethods: [withPassword(`${NUL}@example.com`)] }],
    ['an address without a password', { loginMethods: [{ recipeId: 'passwordless', email: NUL }] }],
    ["a provider's user id", { loginMethods: [withProvider('x@y', { thirdPartyUserId: NUL })] }],
    ['a device name', { totpDevices: [{ secretKey: 'JBSWY3DPEHPK3PXP', deviceName: NUL }] }],
    ['a secret', { totpDevices: [{ secretKey: NUL, deviceName: 'phone' }] }],
  ])('in %s is staged, and keeps its chunk back for good', async (_, change) => {
    for (const version of VERSIONS) {
      const users = [person(change), person(), person()]
      const rows = await imported(coreOf(version), users)
      expect(rows).toEqual(['PROCESSING', 'PROCESSING', 'account'])
    }
  })

  it.each<[CoreVersion, string, object, string]>([
    [
      '10.1',
      'an external id',
      { externalUserId: NUL },
      `${STORAGE}: org.postgresql.util.PSQLException: ERROR: ${unstorable(2)}`,
    ],
    ['10.1', 'an address', { loginMethods: [withPassword(NUL)] }, 'translated'],
    [
      '10.1',
      'an address without a password',
      { loginMethods: [{ recipeId: 'passwordless', email: NUL }] },
      `${STORAGE}: ${batch("INSERT INTO passwordless_users(app_id, user_id, email, phone_number, time_joined) VALUES(('public'), ('<id>'), ('a\0'), (NULL), ('<ms>'::int8))", unstorable(3))}`,
    ],
    [
      '10.1',
      'an address of a provider',
      { loginMethods: [withProvider(NUL, { thirdPartyUserId: 'g-1' })] },
      `${STORAGE}: ${batch("INSERT INTO thirdparty_users(app_id, third_party_id, third_party_user_id, user_id, email, time_joined) VALUES(('public'), ('google'), ('g-1'), ('<id>'), ('a\0'), ('<ms>'::int8))", unstorable(5))}`,
    ],
    [
      '10.1',
      'a number',
      { loginMethods: [withPhone(NUL)] },
      `${STORAGE}: ${batch("INSERT INTO passwordless_users(app_id, user_id, email, phone_number, time_joined) VALUES(('public'), ('<id>'), (NULL), ('a\0'), ('<ms>'::int8))", unstorable(4))}`,
    ],
    ['11.4', 'a number', { loginMethods: [withPhone(NUL)] }, 'translated'],
  ])('is refused by direct import to core %s in %s', async (version, _, change, text) => {
    const { status, json } = await post(coreOf(version), '/bulk-import/import', person(change))
    expect(status).toBe(400)
    expect(json).toEqual({ errors: [expect.stringMatching(escaped(text))] })
  })

  it('in a device name is refused by direct import with the whole statement', async () => {
    const totpDevices = [{ secretKey: 'JBSWY3DPEHPK3PXP', deviceName: NUL }]
    const user = person({ totpDevices })
    const { json } = await post(coreOf('10.1'), '/bulk-import/import', user)
    const changes =
      "secret_key = ('JBSWY3DPEHPK3PXP'), period = ('30'::int4), skew = ('1'::int4), created_at = ('<ms>'::int8), verified = ('TRUE')"
    const statement = `INSERT INTO totp_user_devices (app_id, user_id, device_name, secret_key, period, skew, verified, created_at) VALUES (('public'), ('${user.externalUserId}'), ('a\0'), ('JBSWY3DPEHPK3PXP'), ('30'::int4), ('1'::int4), ('TRUE'), ('<ms>'::int8)) ON CONFLICT (app_id, user_id, device_name) DO UPDATE SET ${changes}`
    const text = `java.lang.Exception: E036: ${batch(statement, unstorable(3))}`
    expect(json).toEqual({ errors: [expect.stringMatching(escaped(text))] })
  })

  it('is kept in metadata', async () => {
    const user = person({ userMetadata: { note: NUL } })
    expect(await imported(coreOf('11.4'), [user])).toEqual(['account'])
  })
})

it('keeps the number of an address that reads the same', async () => {
  const text = 'no-number'
  const core = coreOf('11.4')
  const byEmail = person({ loginMethods: [{ recipeId: 'passwordless', email: text }] })
  expect((await post(core, '/bulk-import/import', byEmail)).status).toBe(200)
  const byNumber = person({ loginMethods: [withPhone(text)] })
  expect((await post(core, '/bulk-import/import', byNumber)).status).toBe(200)
})
