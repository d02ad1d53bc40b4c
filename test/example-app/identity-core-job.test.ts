import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startIdentityCore } from '../../example-app/identity-core/identity-core.js'
import { ALL_FEATURES } from '../../example-app/identity-core/users/users.js'
import { person, withPassword, withProvider } from '../core/people.js'
import {
  accountsByExternalId,
  type StandInCore,
  startStandInCore,
} from '../support/stand-in-core.js'

const CHUNK_USERS = 10

let core: StandInCore

beforeAll(async () => {
  core = await startStandInCore({
    roles: ['admin'],
    tenants: [{ tenantId: 'shop', thirdPartyIds: ['google'] }],
    largestBodyBytes: 100_000,
    job: { intervalMs: 'off', chunkUsers: CHUNK_USERS },
  })
})
afterAll(() => core.close())
afterEach(async () => {
  core.setFeatures(ALL_FEATURES)
  await core.query('delete from bulk_import_users')
})

async function call(path: string, body?: object, { url, apiKey } = core) {
  const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
  const response = await fetch(`${url}${path}`, { headers: { 'api-key': apiKey }, ...sent })
  return { status: response.status, text: await response.text() }
}

async function stage(users: readonly object[]): Promise<void> {
  expect((await call('/bulk-import/users', { users })).status).toBe(200)
}

async function failures(): Promise<Map<string, string>> {
  const rows = await core.query<{ raw_data: string; error_msg: string; status: string }>(
    'select raw_data, error_msg, status from bulk_import_users',
  )
  expect(rows.every(({ status }) => status === 'FAILED')).toBe(true)
  return new Map(rows.map((row) => [JSON.parse(row.raw_data).externalUserId, row.error_msg]))
}

const people = (count: number) => Array.from({ length: count }, () => person())

describe('a run of the job', () => {
  it('imports all but those who are to blame, in as many rounds as that takes', async () => {
    const known = person()
    await call('/bulk-import/import', known)
    const good = people(17)
    const bad = Array.from({ length: 4 }, () => person({ loginMethods: known.loginMethods }))
    await stage([...bad.slice(0, 2), ...good, ...bad.slice(2)])
    await core.runJob()
    const accounts = await accountsByExternalId(core)
    expect(good.filter(({ externalUserId }) => !accounts.has(externalUserId))).toEqual([])
    const failed = await failures()
    expect([...failed.keys()].toSorted()).toEqual(
      bad.map(({ externalUserId }) => externalUserId).toSorted(),
    )
    for (const text of failed.values()) expect(text).toMatch(/^E003: /)
  })

  it('imports the first of two that claim one login, however often their rows were written', async () => {
    const known = person()
    await call('/bulk-import/import', known)
    for (let time = 0; time < 5; time++) {
      const bad = Array.from({ length: 4 }, () => person({ loginMethods: known.loginMethods }))
      const firsts = people(3)
      const twins = firsts.map(({ loginMethods }) => person({ loginMethods }))
      await stage([...bad, ...firsts, ...twins])
      await core.runJob()
      expect([...(await failures()).keys()].toSorted()).toEqual(
        [...bad, ...twins].map(({ externalUserId }) => externalUserId).toSorted(),
      )
      await core.query('delete from bulk_import_users')
    }
  })

  it('keeps the others of a failed chunk for the next round', async () => {
    const known = person()
    await call('/bulk-import/import', known)
    const good = people(3)
    await stage([...good, person({ loginMethods: known.loginMethods })])
    const beforeDelete = () => {
      throw new Error('the first chunk to succeed')
    }
    await expect(core.runJob({ beforeDelete })).rejects.toThrow('the first chunk to succeed')
    const rows = await core.query<{ status: string }>(
      'select status from bulk_import_users order by status',
    )
    const waiting = { status: 'PROCESSING' }
    expect(rows).toEqual([{ status: 'FAILED' }, waiting, waiting, waiting])
  })

  it('fails a whole chunk when nobody is to blame', async () => {
    const users = people(CHUNK_USERS + 2)
    await stage(users)
    const chunkFault = 'E004: the tenant is gone'
    await core.runJob({ chunkFault })
    expect([...(await failures()).values()]).toEqual(users.map(() => chunkFault))
  })

  it('fails all beside a device without a name, and quotes its key as the core does', async () => {
    const secretKey = 'JBSWY3DPEHPK3PXP'
    await stage([...people(2), person({ totpDevices: [{ secretKey }] })])
    await core.runJob()
    const texts = [...(await failures()).values()]
    expect(new Set(texts).size).toBe(1)
    expect(texts[0]).toMatch(/^E036: .*JBSWY3DPEHPK3PXP/)
  })

  it('fails all beside a primary method without the feature', async () => {
    const primary = withPassword('primary@example.com', { isPrimary: true })
    await stage([...people(2), person({ loginMethods: [primary] })])
    core.setFeatures([])
    await core.runJob()
    expect([...(await failures()).values()]).toEqual(
      Array(3).fill(
        'E019: Account linking feature is not enabled for this app. Please contact support to enable it.',
      ),
    )
  })

  it('checks each user again, and lists what is wrong by now', async () => {
    const good = person()
    const login = withPassword('late@example.com', { tenantIds: ['shop', 'public'] })
    const bad = person({ loginMethods: [login], totpDevices: [] })
    await stage([good, bad])
    core.setFeatures([])
    await core.runJob()
    expect(await failures()).toEqual(
      new Map([
        [
          bad.externalUserId,
          '[MFA must be enabled to import totp devices., Multitenancy must be enabled before importing users to a different tenant.]',
        ],
      ]),
    )
    expect((await accountsByExternalId(core)).has(good.externalUserId)).toBe(true)
  })

  it('fails as a duplicate whom it had imported before it could delete the row', async () => {
    const user = person()
    await stage([user])
    const beforeDelete = () => {
      throw new Error('a crash')
    }
    await expect(core.runJob({ beforeDelete })).rejects.toThrow('a crash')
    await core.runJob()
    expect([...(await failures())]).toEqual([
      [user.externalUserId, expect.stringMatching(/^E003: /)],
    ])
    expect((await accountsByExternalId(core)).has(user.externalUserId)).toBe(true)
  })

  it('leaves methods unlinked when none is primary', async () => {
    const login = withPassword('two@example.com')
    const user = person({ loginMethods: [login, withProvider('two@example.com')] })
    await stage([user])
    await core.runJob()
    const { text } = await call(`/user/id?userId=${user.externalUserId}`)
    expect(JSON.parse(text).user.loginMethods).toHaveLength(1)
    const found = await call(
      '/users/by-accountinfo?doUnionOfAccountInfo=false&email=two@example.com',
    )
    expect(JSON.parse(found.text).users).toHaveLength(2)
  })

  it('lets requests pass between its chunks', async () => {
    await stage(people(60))
    const run = core.runJob()
    const seen = new Set<number>()
    let count = 60
    while (count > 0) {
      count = JSON.parse((await call('/bulk-import/users/count')).text).count
      seen.add(count)
    }
    await run
    expect([...seen].filter((left) => left > 0 && left < 60).length).toBeGreaterThan(0)
  })
})

describe('the stand-in', () => {
  it('refuses bodies beyond a limit that it is given', async () => {
    const padding = 'x'.repeat(100_000)
    expect((await call('/bulk-import/users', { users: [], padding })).status).toBe(413)
  })

  it('says nothing of staged users, as a core before 10.1.1, and imports by itself', async () => {
    const older = await startStandInCore({ tellsStagedUsers: false, job: { intervalMs: 20 } })
    const { text } = await call('/bulk-import/users', { users: people(1) }, older)
    expect(text).toBe('{"status":"OK"}\n')
    await expect.poll(async () => (await accountsByExternalId(older)).size).toBe(1)
    await older.close()
  })

  it('shares its folder with no other', async () => {
    const again = startStandInCore({ database: core.folder })
    await expect(again).rejects.toThrow(`the database ${core.folder} is in use by another core`)
  })

  it('keeps nothing without a database', async () => {
    const apiKey = 'the-key-of-the-core-in-memory'
    const { url, close } = await startIdentityCore({ apiKey })
    const inMemory = { ...core, url, apiKey }
    const answers = [
      await call('/bulk-import/users', undefined, inMemory),
      await call('/bulk-import/users', {}, inMemory),
      await call('/bulk-import/users/count', undefined, inMemory),
      await call('/bulk-import/users/remove', {}, inMemory),
      await call('/bulk-import/import', {}, inMemory),
    ]
    const text = 'This API is not supported in the in-memory database.\n'
    expect(answers).toEqual(Array(5).fill({ status: 400, text }))
    await close()
  })
})
