import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { asking, type CoreUnderTest, openCore, refusal } from './core-under-test.js'
import { HASH, person, withPassword } from './people.js'

let core: CoreUnderTest

beforeAll(async () => {
  core = await openCore()
})
afterAll(() => core?.close())

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Somebody whose address has an account: the row stays, whatever the job does. */
async function personWhoStays() {
  const known = person()
  await core.importUser(known)
  return person({ loginMethods: known.loginMethods })
}

describe('staging', () => {
  it('answers with the ids that the accounts will have, in the order of the request', async () => {
    const users = [await personWhoStays(), await personWhoStays()]
    const answer = await core.stage(users)
    expect(answer).toMatchObject({ status: 200, type: 'application/json;charset=UTF-8' })
    expect(answer.text.endsWith('}\n')).toBe(true)
    expect(answer.json).toEqual({
      status: 'OK',
      users: users.map(({ externalUserId, loginMethods: [method] }) => ({
        userId: externalUserId,
        loginMethods: [
          {
            recipeId: 'emailpassword',
            userId: expect.stringMatching(UUID),
            tenants: ['public'],
            email: method?.email,
          },
        ],
      })),
    })
  })

  it('shows a row under the id of its primary method, with everything in clear', async () => {
    const user = await personWhoStays()
    const staged = await core.stage([{ ...user, userMetadata: { team: 'blue' } }])
    const { userId } = staged.json.users[0].loginMethods[0]
    const { json } = await core.get('/bulk-import/users')
    expect(json.users.find(({ id }: { id: string }) => id === userId)).toMatchObject({
      id: userId,
      externalUserId: user.externalUserId,
      userMetadata: { team: 'blue' },
      status: expect.stringMatching(/^(NEW|PROCESSING|FAILED)$/),
      createdAt: expect.any(Number),
      updatedAt: expect.any(Number),
      loginMethods: [
        {
          ...user.loginMethods[0],
          hashingAlgorithm: 'BCRYPT',
          passwordHash: HASH,
          isVerified: false,
          isPrimary: false,
          tenantIds: ['public'],
          superTokensUserId: userId,
        },
      ],
    })
  })

  it('takes an empty list, without a word of users', async () => {
    expect((await core.stage([])).text).toBe('{"status":"OK"}\n')
  })

  it('stages the same user twice', async () => {
    const user = await personWhoStays()
    await core.stage([user])
    expect((await core.stage([user])).status).toBe(200)
  })

  it('refuses the whole call for one bad user', async () => {
    const good = person()
    const answer = await core.stage([good, { ...person(), loginMethods: [] }])
    const error =
      'Data has missing or invalid fields. Please check the users field for more details.'
    const users = [{ index: 1, errors: ['At least one loginMethod is required.'] }]
    expect(answer).toMatchObject(refusal(400, JSON.stringify({ error, users })))
    const { json } = await core.get('/bulk-import/users?limit=500')
    const ids = json.users.map((row: { externalUserId: string }) => row.externalUserId)
    expect(ids).not.toContain(good.externalUserId)
  })

  it.each([
    ['no JSON', 'x', 'Invalid Json Input'],
    ['an array', '[]', 'Invalid Json Input'],
    ['no users', '{}', "Field name 'users' is invalid in JSON input"],
    ['users of another type', '{"users":{}}', "Field name 'users' is invalid in JSON input"],
    ['null for users', '{"users":null}', "Field name 'users' is invalid in JSON input"],
    [
      'too many',
      `{"users":[${Array(10_001).fill('{}')}]}`,
      '{"error":"You can only add 10000 users at a time."}',
    ],
  ])('refuses %s', async (_, body, text) => {
    expect(await core.post('/bulk-import/users', body)).toMatchObject(refusal(400, text))
  })

  it('answers 500 to a user that is no object, and to a role without a name', async () => {
    const number = await core.post('/bulk-import/users', { users: [1] })
    expect(number.status).toBe(500)
    const nameless = person({ userRoles: [{ tenantIds: ['public'] }] })
    const { status, type } = await core.stage([nameless])
    expect({ status, type }).toEqual({ status: 500, type: 'text/html;charset=UTF-8' })
  })
})

describe('listing and counting', () => {
  it('lists in pages, newest first, each row once', async () => {
    const users = await Promise.all(Array.from({ length: 5 }, personWhoStays))
    const staged = await core.stage(users)
    const own: string[] = staged.json.users.map(
      (user: { loginMethods: { userId: string }[] }) => user.loginMethods[0]?.userId,
    )
    const rows: { id: string; createdAt: number }[] = []
    let paginationToken: string | undefined
    do {
      const page = paginationToken === undefined ? {} : { paginationToken }
      const { json } = await core.get(`/bulk-import/users${asking({ limit: '2', ...page })}`)
      rows.push(...json.users)
      paginationToken = json.nextPaginationToken
      // A given core may hold thousands of others' rows; ours are the newest.
    } while (paginationToken !== undefined && rows.length < 40)
    const ids = rows.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(ids).toEqual(expect.arrayContaining(own))
    const order = rows.map(({ createdAt, id }) => `${createdAt} ${id}`)
    expect(order).toEqual(order.toSorted().reverse())
  })

  it('names the next page by the first row of it', async () => {
    await core.stage([await personWhoStays(), await personWhoStays()])
    const { json: first } = await core.get('/bulk-import/users?limit=1')
    const token = first.nextPaginationToken
    const { json } = await core.get(
      `/bulk-import/users${asking({ limit: '1', paginationToken: token })}`,
    )
    const [row] = json.users
    expect(Buffer.from(token, 'base64').toString()).toBe(`${row.id};${row.createdAt}`)
    expect(token).toBe(Buffer.from(`${row.id};${row.createdAt}`).toString('base64'))
  })

  it('counts all rows, or those of one status', async () => {
    await core.stage([await personWhoStays()])
    const { json } = await core.get('/bulk-import/users/count')
    expect(json).toEqual({ status: 'OK', count: expect.any(Number) })
    expect(json.count).toBeGreaterThan(0)
    for (const status of ['NEW', 'PROCESSING', 'FAILED']) {
      const answer = await core.get(`/bulk-import/users/count${asking({ status })}`)
      expect(answer.json).toEqual({ status: 'OK', count: expect.any(Number) })
    }
  })

  const STATUS = 'Invalid value for status. Pass one of NEW, PROCESSING, or FAILED!'
  it.each([
    ['/bulk-import/users?limit=501', 'Max limit allowed is 500'],
    ['/bulk-import/users?limit=0', 'limit must a positive integer with min value 1'],
    ['/bulk-import/users?limit=-1', 'limit must a positive integer with min value 1'],
    ['/bulk-import/users?limit=x', "Field name 'limit' must be an int in the GET request"],
    ['/bulk-import/users?limit=', "Field name 'limit' must be an int in the GET request"],
    ['/bulk-import/users?limit=1.5', "Field name 'limit' must be an int in the GET request"],
    ['/bulk-import/users?status=new', STATUS],
    ['/bulk-import/users?status=', STATUS],
    ['/bulk-import/users/count?status=DONE', STATUS],
    ['/bulk-import/users?paginationToken=x', 'invalid pagination token'],
    ['/bulk-import/users?paginationToken=', 'invalid pagination token'],
    [`/bulk-import/users?paginationToken=${btoa('a;b')}`, 'invalid pagination token'],
  ])('refuses %s', async (path, text) => {
    expect(await core.get(path)).toMatchObject(refusal(400, text))
  })
})

describe('removing', () => {
  it('tells which rows were there, ids that were given twice twice', async () => {
    const staged = await core.stage([await personWhoStays()])
    const { userId } = staged.json.users[0].loginMethods[0]
    const ids = [userId, 'unknown', userId]
    const { text } = await core.post('/bulk-import/users/remove', { ids })
    expect(text).toBe(
      `${JSON.stringify({ deletedIds: [userId, userId], invalidIds: ['unknown'] })}\n`,
    )
    const again = await core.post('/bulk-import/users/remove', { ids: [userId] })
    expect(again.json).toEqual({ deletedIds: [], invalidIds: [userId] })
  })

  it('takes an empty list', async () => {
    const { text } = await core.post('/bulk-import/users/remove', { ids: [] })
    expect(text).toBe('{"deletedIds":[],"invalidIds":[]}\n')
  })

  it.each([
    ['no ids', {}, "Field name 'ids' is invalid in JSON input"],
    ['a number', { ids: [1] }, "Field name 'ids' is invalid in JSON input"],
    ['an empty string', { ids: [''] }, "Field name 'ids' cannot contain an empty string"],
    [
      'too many',
      { ids: Array(501).fill('x') },
      "Field name 'ids' cannot contain more than 500 elements",
    ],
  ])('refuses %s', async (_, body, text) => {
    expect(await core.post('/bulk-import/users/remove', body)).toMatchObject(refusal(400, text))
  })
})

describe('a path', () => {
  it.each(['/public/bulk-import/users/count', '/appid-public/bulk-import/users/count/'])(
    'may name what is the default: %s',
    async (path) => {
      expect((await core.get(path)).status).toBe(200)
    },
  )

  it('may not name a tenant', async () => {
    const text = 'Only public tenantId can call this app specific API'
    expect(await core.get('/some-tenant/bulk-import/users/count')).toMatchObject(refusal(403, text))
  })

  it('is refused by name: key, method, path, version', async () => {
    const count = '/bulk-import/users/count'
    expect(await core.get(count, { 'api-key': 'wrong' })).toMatchObject(
      refusal(401, 'Invalid API key'),
    )
    expect(await core.post(count, {})).toMatchObject(refusal(405, 'Method not supported'))
    expect(await core.get('/bulk-import')).toMatchObject(refusal(404, 'Not found'))
    expect(await core.get(count, { 'cdi-version': '99.0' })).toMatchObject(
      refusal(400, 'cdi-version 99.0 not supported'),
    )
  })
})

it('keeps an invalid time, address and type apart from each other', async () => {
  const user = person({
    externalUserId: 7,
    loginMethods: [withPassword(' ', { timeJoinedInMSSinceEpoch: -1, isVerified: null })],
  })
  const { json } = await core.stage([user])
  expect(json.users[0].errors).toEqual([
    'externalUserId should be of type string.',
    'isVerified should be of type boolean for a loginMethod.',
    'timeJoined cannot be < 0 for a loginMethod.',
    'email should be of type string for an emailpassword recipe.',
  ])
})
