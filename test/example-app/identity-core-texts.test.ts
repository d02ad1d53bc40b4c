import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CoreVersion } from '../../example-app/identity-core/interface-version.js'
import { person, withPassword, withPhone, withProvider } from '../core/people.js'
import { runJobToEnd, type StandInCore, startStandInCore } from '../support/core/stand-in-core.js'

const cores = new Map<CoreVersion, StandInCore>()

beforeAll(async () => {
  for (const version of ['10.1', '11.4'] as const) {
    cores.set(version, await startStandInCore({ version }))
  }
})
afterAll(async () => {
  for (const core of cores.values()) await core.close()
})

async function call(version: CoreVersion, path: string, body?: object) {
  const core = cores.get(version)
  if (core === undefined) throw new Error(`no core of version ${version} was started`)
  const headers = { 'api-key': core.apiKey, 'content-type': 'application/json; charset=utf-8' }
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(`${core.url}${path}`, { headers, ...sent })
  return {
    status: response.status,
    text: await response.clone().text(),
    json: await json(response),
  }
}

// biome-ignore lint/suspicious/noExplicitAny: what is compared with what a test expects.
async function json(response: Response): Promise<any> {
  return response.json().catch(() => undefined)
}

async function runJob(version: CoreVersion): Promise<void> {
  const core = cores.get(version)
  if (core !== undefined) await runJobToEnd(core)
}

describe('a phone number', () => {
  it.each([
    ['+41 44 668 18 06 ext. 7', '+41446681806'],
    ['++41446681808', '+41446681808'],
    ['+41 (0) 44 668 18 09', '+41446681809'],
    ['tel:+41446681810', '+41446681810'],
    ['+41446681811;ext=3', '+41446681811'],
    ['+٤١٤٤٦٦٨١٨١٢', '+41446681812'],
    ['＋41446681813', '+41446681813'],
    ['+1-800-FLOWERS', '+18003569377'],
    ['+410446681817', '+41446681817'],
    ['+4901511234567', '+491511234567'],
    ['+4402070313000', '+442070313000'],
    ['+5215512345678', '+525512345678'],
    [' no number ', 'no number'],
  ])('written %s is kept as %s, as recorded', async (written, kept) => {
    const user = person({ loginMethods: [withPhone(written)] })
    const answer = await call('11.4', '/bulk-import/import', user)
    expect(answer.json.user.phoneNumbers).toEqual([kept])
    const asked = encodeURIComponent(written)
    const path = `/users/by-accountinfo?doUnionOfAccountInfo=false&phoneNumber=${asked}`
    const found = await call('11.4', path)
    expect(found.json.users.map(({ id }: { id: string }) => id)).toEqual([user.externalUserId])
  })

  it('in two spellings keeps both rows of a chunk back at core 10.1, and fails one at 11.4', async () => {
    const users = ['+41444413325', '+410444413325'].map((number) =>
      person({ loginMethods: [withPhone(number)] }),
    )
    for (const [version, left] of [
      ['10.1', ['PROCESSING', 'PROCESSING']],
      ['11.4', ['FAILED']],
    ] as const) {
      await call(version, '/bulk-import/users', { users })
      await runJob(version)
      const rows = await call(version, '/bulk-import/users')
      expect(rows.json.users.map(({ status }: { status: string }) => status)).toEqual(left)
    }
  })
})

describe('half a surrogate pair', () => {
  const half = 'a\ud800b'
  const login = withProvider(`${half}@example.com`, { thirdPartyUserId: half })
  const user = person({
    externalUserId: half,
    loginMethods: [login],
    userMetadata: { [half]: half },
    totpDevices: [{ secretKey: 'JBSWY3DPEHPK3PXP', deviceName: half }],
  })

  it('is kept as a question mark, from staging on', async () => {
    const staged = await call('11.4', '/bulk-import/users', { users: [user] })
    expect(staged.json.users[0]).toMatchObject({
      userId: 'a?b',
      loginMethods: [{ email: 'a?b@example.com', thirdpartyUserId: 'a?b' }],
    })
    const rows = await call('11.4', '/bulk-import/users?limit=1')
    expect(rows.json.users[0]).toMatchObject({
      externalUserId: 'a?b',
      userMetadata: { 'a?b': 'a?b' },
    })
    await runJob('11.4')
    const found = await call('11.4', '/user/id?userId=a%3Fb')
    expect(found.json.user.thirdParty).toEqual([{ id: 'google', userId: 'a?b' }])
    const devices = await call('11.4', '/recipe/totp/device/list?userId=a%3Fb')
    expect(devices.json.devices[0].name).toBe('a?b')
  })

  it('makes two addresses one', async () => {
    const [first, second] = ['x\ud800', 'x\udc00'].map((text) =>
      person({ loginMethods: [withPassword(`${text}@example.com`)] }),
    )
    expect((await call('11.4', '/bulk-import/import', first)).status).toBe(200)
    const { json } = await call('11.4', '/bulk-import/import', second)
    expect(json.errors).toEqual([
      'E003: A user with email x?@example.com already exists in emailpassword loginMethod.',
    ])
  })
})

it('a byte order mark stays at the beginning of a text', async () => {
  const loginMethods = [withPhone('\ufeffa'), withProvider('bom@x', { thirdPartyId: '\ufeffa' })]
  const totpDevices = [{ secretKey: 'JBSWY3DPEHPK3PXP', deviceName: '\ufeffa' }]
  const user = person({ loginMethods, totpDevices })
  const { json } = await call('11.4', '/bulk-import/import', user)
  expect(json.user.phoneNumbers).toEqual(['\ufeffa'])
  expect(json.user.thirdParty[0].id).toBe('\ufeffa')
  const devices = await call('11.4', `/recipe/totp/device/list?userId=${user.externalUserId}`)
  expect(devices.json.devices[0].name).toBe('\ufeffa')
})

it('of two devices of one name the last is kept', async () => {
  const totpDevices = [30, 60].map((period) => {
    return { secretKey: 'JBSWY3DPEHPK3PXP', deviceName: 'phone', period }
  })
  const user = person({ totpDevices })
  await call('11.4', '/bulk-import/import', user)
  const { json } = await call('11.4', `/recipe/totp/device/list?userId=${user.externalUserId}`)
  expect(json.devices).toEqual([{ name: 'phone', period: 60, skew: 1, verified: true }])
})

it('a staged user loses what is null in metadata, one imported directly keeps it', async () => {
  const userMetadata = { a: { b: [1, null, { c: null }], d: null } }
  const [staged, direct] = [person({ userMetadata }), person({ userMetadata })]
  await call('11.4', '/bulk-import/users', { users: [staged] })
  await runJob('11.4')
  await call('11.4', '/bulk-import/import', direct)
  const kept = async ({ externalUserId }: { externalUserId: string }) =>
    (await call('11.4', `/recipe/user/metadata?userId=${externalUserId}`)).json.metadata
  expect(await kept(staged)).toEqual({ a: { b: [1, null, {}] } })
  expect(await kept(direct)).toEqual(userMetadata)
})

it.each([
  '/recipe/user/metadata?userId=a%00',
  '/recipe/user/roles?userId=a%00',
  '/recipe/totp/device/list?userId=a%00',
])('a NUL in a look-up is a fault of the database: %s', async (path) => {
  const { status, text } = await call('11.4', path)
  expect({ status, text }).toEqual({
    status: 500,
    text: 'io.supertokens.pluginInterface.exceptions.StorageQueryException: org.postgresql.util.PSQLException: ERROR: invalid byte sequence for encoding "UTF8": 0x00\n  Where: unnamed portal parameter $2\n',
  })
})

it.each([
  ['/bulk-import/users?limit=2147483648', "Field name 'limit' must be an int in the GET request\n"],
  [`/users?paginationToken=${token('a;9223372036854775808')}`, 'invalid pagination token\n'],
])('a parameter beyond what the core reads is refused: %s', async (path, text) => {
  expect(await call('11.4', path)).toMatchObject({ status: 400, text })
})

it.each([
  ['an empty id', ';1700000000000'],
  ['the largest time', 'a;9223372036854775807'],
])('a page may begin at %s', async (_, place) => {
  const { status } = await call('11.4', `/bulk-import/users?paginationToken=${token(place)}`)
  expect(status).toBe(200)
})

function token(place: string): string {
  return encodeURIComponent(Buffer.from(place).toString('base64'))
}
