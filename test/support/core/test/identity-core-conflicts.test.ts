import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { person, withPassword, withPhone } from '../../../core/people.js'
import type { CoreVersion } from '../identity-core/interface-version.js'
import {
  accountsByExternalId,
  runJobToEnd,
  type StandInCore,
  startStandInCore,
} from '../stand-in-core.js'

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

describe.each(VERSIONS)('core %s', (version) => {
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
