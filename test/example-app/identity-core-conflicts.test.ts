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

const email = `taken-${Date.now()}@example.com`
const number = phoneNumber()
const provider = withProvider('of-provider@example.com')
const passwordless = { recipeId: 'passwordless', email }

const E003 = `E003: A user with email ${email} already exists in emailpassword loginMethod.`
const E006 = `E006: A user with email ${email} already exists in passwordless loginMethod.`
const E007 = `E007: A user with phoneNumber ${number} already exists in passwordless loginMethod.`

/** A login that another account holds, and the text of a row that has it where the core names it. */
const TAKEN: readonly [string, CoreVersion, object, string?][] = [
  ['an address with a password', '10.1', withPassword(email), E003],
  ['an address with a password', '11.4', withPassword(email), E003],
  ['an address without a password', '10.1', passwordless],
  ['an address without a password', '11.4', passwordless, E006],
  ['a number', '10.1', withPhone(number)],
  ['a number', '11.4', withPhone(number), E007],
  ['a user of a provider', '10.1', provider],
  ['a user of a provider', '11.4', provider],
]

it.each(TAKEN)(
  '%s that is taken makes a row of core %s fail, or stay for good',
  async (_, version, login, text) => {
    const core = coreOf(version)
    const loginMethods = [login]
    await post(core, '/bulk-import/import', person({ loginMethods }))
    const users = [person({ loginMethods }), person(), person()]
    const stuck = ['PROCESSING', 'PROCESSING', 'account']
    expect(await imported(core, users)).toEqual(
      text === undefined ? stuck : [`FAILED ${text}`, 'account', 'account'],
    )
  },
)

describe.each(VERSIONS)('core %s', (version) => {
  it('keeps back the row of an external id that is taken', async () => {
    const core = coreOf(version)
    const known = person()
    const { externalUserId } = known
    await post(core, '/bulk-import/import', known)
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
    const { externalUserId: id } = bad
    const text = `io.supertokens.pluginInterface.exceptions.StorageQueryException: java.sql.BatchUpdateException: Batch entry 1 INSERT INTO user_roles(app_id, tenant_id, user_id, role) VALUES(('public'), ('public'), ('${id}'), ('editor')) was aborted: ERROR: duplicate key value violates unique constraint "user_roles_pkey"\n  Detail: Key (app_id, tenant_id, user_id, role)=(public, public, ${id}, editor) already exists.  Call getNextException to see other errors in the batch.`
    const rows = await imported(core, [bad, person(), person()])
    expect(rows).toEqual([`FAILED ${text}`, `FAILED ${text}`, 'account'])
  })

  it('names each login that another account holds in a further tenant', async () => {
    const core = coreOf(version)
    const address = `tenant-${Date.now()}@example.com`
    const inShop = withPassword(address, { tenantIds: ['shop'] })
    await post(core, '/bulk-import/import', person({ loginMethods: [inShop] }))
    const inBoth = withPassword(address, { tenantIds: ['public', 'shop'] })
    const [row] = await imported(core, [person({ loginMethods: [inBoth] })])
    expect(row?.replace(/[0-9a-f-]{36}/, 'of the core')).toBe(
      `FAILED E014: We tried to add the userId of the core to the tenantId shop but another user with email ${address} already exists.`,
    )
  })
})

const NUL = 'a\0b'

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

  it('in a number is refused by direct import to core 11.4, and not named', async () => {
    const user = person({ loginMethods: [withPhone(NUL)] })
    const { status, json } = await post(coreOf('11.4'), '/bulk-import/import', user)
    expect({ status, json }).toEqual({ status: 400, json: { errors: ['translated'] } })
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
