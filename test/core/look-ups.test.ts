import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { asking, type CoreUnderTest, openCore, refusal, uniqueName } from './core-under-test.js'
import { person, phoneNumber, withPassword, withPhone, withProvider } from './people.js'

let core: CoreUnderTest
let role: string
const email = `${uniqueName('user')}@example.com`
const user = person({ userMetadata: { team: { name: 'blue' }, n: [1, null] } })

beforeAll(async () => {
  core = await openCore()
  role = await core.makeRole(uniqueName('role'))
  const roles = [{ role, tenantIds: ['public'] }]
  const made = await core.importUser({
    ...user,
    loginMethods: [withPassword(email)],
    ...{ userRoles: roles },
  })
  expect(made.status).toBe(200)
})
afterAll(() => core?.close())

const map = (userId: string, userIdType?: string) =>
  core.get(`/recipe/userid/map${asking({ userId, ...(userIdType && { userIdType }) })}`)
const usersWith = (info: Record<string, string>, path = '/users/by-accountinfo') =>
  core.get(`${path}${asking({ doUnionOfAccountInfo: 'false', ...info })}`)

describe('the map of ids', () => {
  it('leads from the external id to the id of the core, and back', async () => {
    const { json } = await map(user.externalUserId, 'EXTERNAL')
    expect(json).toEqual({
      status: 'OK',
      superTokensUserId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      externalUserId: user.externalUserId,
    })
    expect((await map(json.superTokensUserId, 'SUPERTOKENS')).json).toEqual(json)
    expect((await map(json.superTokensUserId)).json).toEqual(json)
    const unknown = { status: 'UNKNOWN_MAPPING_ERROR' }
    expect((await map(json.superTokensUserId, 'EXTERNAL')).json).toEqual(unknown)
    expect((await map(user.externalUserId, 'SUPERTOKENS')).json).toEqual(unknown)
  })

  it('knows nobody else', async () => {
    expect((await map(uniqueName('nobody'))).json).toEqual({ status: 'UNKNOWN_MAPPING_ERROR' })
  })

  it.each([
    ['/recipe/userid/map', "Field name 'userId' is missing in GET request"],
    ['/recipe/userid/map?userId=%20', "Field name 'userId' cannot be an empty String"],
    [
      '/recipe/userid/map?userId=a&userIdType=external',
      "Field name 'userIdType' should be one of 'SUPERTOKENS', 'EXTERNAL' or 'ANY'",
    ],
  ])('refuses %s', async (path, text) => {
    expect(await core.get(path)).toMatchObject(refusal(400, text))
  })
})

describe('a user', () => {
  it('is found by either id', async () => {
    const { json } = await map(user.externalUserId)
    const byExternal = await core.get(`/user/id?userId=${user.externalUserId}`)
    const byCore = await core.get(`/user/id?userId=${json.superTokensUserId}`)
    expect(byExternal.json.user.id).toBe(user.externalUserId)
    expect(byCore.json).toEqual(byExternal.json)
  })

  it('is unknown under another', async () => {
    const { json } = await core.get(`/user/id?userId=${uniqueName('nobody')}`)
    expect(json).toEqual({ status: 'UNKNOWN_USER_ID_ERROR' })
  })

  it('is found by address, however that is written', async () => {
    const { json } = await usersWith({ email: ` ${email.toUpperCase()} ` })
    expect(json.users.map(({ id }: { id: string }) => id)).toEqual([user.externalUserId])
    expect((await usersWith({ email: `x${email}` })).json).toEqual({ status: 'OK', users: [] })
  })

  it('is found by number and by provider', async () => {
    const number = phoneNumber()
    const login = withProvider(`${uniqueName('user')}@example.com`)
    const caller = person({ loginMethods: [withPhone(number)] })
    const guest = person({ loginMethods: [login] })
    await core.importUser(caller)
    await core.importUser(guest)
    const byNumber = await usersWith({ phoneNumber: number })
    expect(byNumber.json.users[0].id).toBe(caller.externalUserId)
    const { thirdPartyId, thirdPartyUserId } = login
    const byProvider = await usersWith({ thirdPartyId, thirdPartyUserId })
    expect(byProvider.json.users[0].id).toBe(guest.externalUserId)
  })

  it('is looked up in a tenant', async () => {
    expect((await usersWith({ email }, '/public/users/by-accountinfo')).json.users).toHaveLength(1)
    const unknown = await usersWith({ email }, '/no-such-tenant/users/by-accountinfo')
    expect(unknown).toMatchObject({ status: 400, type: 'text/html;charset=UTF-8' })
    expect(unknown.text).toMatch(/^AppId or tenantId not found => /)
  })

  it.each([
    ['', "Field name 'doUnionOfAccountInfo' is missing in GET request"],
    ['?doUnionOfAccountInfo=1', "'doUnionOfAccountInfo' should be either 'true' or 'false'"],
    [
      '?doUnionOfAccountInfo=true&thirdPartyId=google',
      "If 'thirdPartyId' is provided, 'thirdPartyUserId' must also be provided, and vice versa",
    ],
  ])('is not looked up with "%s"', async (query, text) => {
    expect(await core.get(`/users/by-accountinfo${query}`)).toMatchObject(refusal(400, text))
  })
})

describe('what is kept of a user', () => {
  it('is found by the external id', async () => {
    const userId = asking({ userId: user.externalUserId })
    const roles = await core.get(`/recipe/user/roles${userId}`)
    expect(roles.json).toEqual({ status: 'OK', roles: [role] })
    const metadata = await core.get(`/recipe/user/metadata${userId}`)
    expect(metadata.json).toEqual({ status: 'OK', metadata: user.userMetadata })
    const devices = await core.get(`/recipe/totp/device/list${userId}`)
    expect(devices.json).toEqual({ status: 'OK', devices: [] })
  })

  it('is empty for nobody', async () => {
    const userId = asking({ userId: uniqueName('nobody') })
    expect((await core.get(`/recipe/user/roles${userId}`)).json.roles).toEqual([])
    expect((await core.get(`/recipe/user/metadata${userId}`)).json.metadata).toEqual({})
    expect((await core.get(`/recipe/totp/device/list${userId}`)).json.devices).toEqual([])
  })

  it('is not asked of nobody: an empty id has no devices', async () => {
    expect(await core.get('/recipe/totp/device/list?userId=')).toMatchObject(
      refusal(400, 'userId cannot be empty'),
    )
  })

  it('holds the devices, without their keys', async (test) => {
    if (!core.features.has('mfa')) return test.skip('the licence has no mfa')
    const secretKey = 'JBSWY3DPEHPK3PXP'
    const owner = person({ totpDevices: [{ secretKey, deviceName: ' phone ' }] })
    await core.importUser(owner)
    const { json } = await core.get(
      `/recipe/totp/device/list${asking({ userId: owner.externalUserId })}`,
    )
    expect(json.devices).toEqual([{ name: 'phone', period: 30, skew: 1, verified: true }])
  })
})

describe('the users of a tenant', () => {
  it('come in pages by age', async () => {
    const { json: first } = await core.get('/users?limit=1&timeJoinedOrder=DESC')
    expect(first.users).toHaveLength(1)
    await core.importUser(person())
    const page = await core.get('/users?limit=1')
    expect(page.json.nextPaginationToken).toEqual(expect.any(String))
    const { nextPaginationToken: paginationToken } = page.json
    const next = await core.get(`/users${asking({ limit: '1', paginationToken })}`)
    expect(next.json.users[0].id).not.toBe(page.json.users[0].id)
    expect(next.json.users[0].timeJoined).toBeGreaterThanOrEqual(page.json.users[0].timeJoined)
  })

  it('are counted', async () => {
    const before = (await core.get('/users/count')).json
    expect(before).toEqual({ status: 'OK', count: expect.any(Number) })
    const gone = person()
    await core.importUser(gone)
    expect((await core.get('/users/count?includeAllTenants=true')).json.count).toBeGreaterThan(
      before.count,
    )
  })

  it.each([
    ['/users?limit=501', 'max limit allowed is 500'],
    ['/users?limit=0', 'limit must a positive integer with min value 1'],
    ['/users?timeJoinedOrder=UP', 'timeJoinedOrder can be either ASC OR DESC'],
    ['/users?includeRecipeIds=carrier-pigeon', 'Unknown recipe ID: carrier-pigeon'],
    ['/users/count?includeRecipeIds=x', 'Unknown recipe ID: x'],
  ])('are refused to %s', async (path, text) => {
    expect(await core.get(path)).toMatchObject(refusal(400, text))
  })
})

describe('the settings', () => {
  it('list roles, tenants and features', async () => {
    expect((await core.get('/recipe/roles')).json.roles).toContain(role)
    const tenants = await core.get('/recipe/multitenancy/tenant/list/v2')
    expect(tenants.json).toMatchObject({
      status: 'OK',
      tenants: expect.arrayContaining([expect.objectContaining({ tenantId: 'public' })]),
    })
    expect((await core.get('/ee/featureflag')).json).toMatchObject({
      status: 'OK',
      features: expect.any(Array),
      usageStats: expect.any(Object),
    })
  })

  it('make a role once', async () => {
    const again = await core.put('/recipe/role', { role })
    expect(again.json).toEqual({ status: 'OK', createdNewRole: false })
    expect(await core.put('/recipe/role', { role: ' ' })).toMatchObject(
      refusal(400, "Field name 'role' cannot be an empty String"),
    )
  })
})

it('forgets a user with all that was kept, and says OK to nobody', async () => {
  const gone = person({ userMetadata: { a: 1 }, userRoles: [{ role, tenantIds: ['public'] }] })
  await core.importUser(gone)
  const removal = { userId: gone.externalUserId }
  expect((await core.post('/user/remove', removal)).json).toEqual({ status: 'OK' })
  expect((await core.post('/user/remove', removal)).json).toEqual({ status: 'OK' })
  const userId = asking({ userId: gone.externalUserId })
  expect((await core.get(`/user/id${userId}`)).json.status).toBe('UNKNOWN_USER_ID_ERROR')
  expect((await map(gone.externalUserId)).json.status).toBe('UNKNOWN_MAPPING_ERROR')
  expect((await core.get(`/recipe/user/metadata${userId}`)).json.metadata).toEqual({})
  expect((await core.importUser(gone)).status).toBe(200)
})
