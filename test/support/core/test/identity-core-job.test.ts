import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { person } from '../../../core/people.js'
import { startIdentityCore } from '../identity-core/identity-core.js'
import { ALL_FEATURES } from '../identity-core/users/users.js'
import { accountsByExternalId, startStandInCore } from '../stand-in-core.js'

const MAX_BODY_BYTES = 500_000

const core = await startStandInCore({
  roles: ['admin'],
  tenants: [{ tenantId: 'shop', thirdPartyIds: ['google'] }],
  largestBodyBytes: MAX_BODY_BYTES,
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

/** The texts by external id; all rows have failed when no status is asked for. */
async function failures(status?: 'FAILED'): Promise<Map<string, string>> {
  const rows = (await rowsLeft()).filter((row) => status === undefined || row.status === status)
  expect(rows.every((row) => row.status === 'FAILED')).toBe(true)
  return new Map(rows.map((row) => [JSON.parse(row.raw_data).externalUserId, row.error_msg]))
}

async function rowsLeft() {
  return core.query<{ raw_data: string; error_msg: string; status: string }>(
    'select raw_data, error_msg, status from bulk_import_users order by position',
  )
}

/** The external ids of the rows that the next run takes again. */
async function waiting(): Promise<string[]> {
  const rows = (await rowsLeft()).filter(({ status }) => status === 'PROCESSING')
  return rows.map((row) => JSON.parse(row.raw_data).externalUserId)
}

const idsOf = (users: readonly { readonly externalUserId: string }[]): string[] =>
  users.map(({ externalUserId }) => externalUserId)

/** The external ids of those who have no account. */
async function missing(users: readonly { readonly externalUserId: string }[]): Promise<string[]> {
  const accounts = await accountsByExternalId(core)
  return idsOf(users).filter((id) => !accounts.has(id))
}

const people = (count: number) => Array.from({ length: count }, () => person())

describe('a run of the job', () => {
  it('tries each chunk once: one conflict keeps back all of its chunk until the next run', async () => {
    const known = person()
    await call('/bulk-import/import', known)
    const bad = Array.from({ length: 2 }, () => person({ loginMethods: known.loginMethods }))
    const first = people(3)
    const second = people(3)
    await stage([...bad, ...first, ...second])
    await core.runJob()
    expect(await waiting()).toEqual(idsOf([...bad.slice(1), ...first]))
    expect(await missing(second)).toEqual([])
    await core.runJob()
    expect(await waiting()).toEqual(idsOf(first.slice(0, 2)))
    await core.runJob()
    expect(await missing(first)).toEqual([])
    const failed = await failures()
    expect([...failed.keys()]).toEqual(idsOf(bad))
    for (const text of failed.values()) expect(text).toMatch(/^E003: /)
  })

  it('names whoever has the place in the chunk that the conflict has among 100 statements', async () => {
    const known = [person(), person(), person(), person()]
    for (const user of known) await call('/bulk-import/import', user)
    const taken = new Map([50, 150, 250, 350].map((place, index) => [place, known[index]]))
    const users = people(400).map((user, place) => {
      return { ...user, loginMethods: taken.get(place)?.loginMethods ?? user.loginMethods }
    })
    await stage(users)
    const blamed: number[] = []
    for (let run = 0; run < 5; run++) {
      await core.runJob()
      const failed = [...(await failures('FAILED')).keys()]
      const places = failed.map((id) => users.findIndex((user) => user.externalUserId === id))
      blamed.push(...places.filter((place) => !blamed.includes(place)).toSorted((a, b) => a - b))
    }
    // As recorded of core 11.4.7: all after the first two are innocent.
    expect(blamed).toEqual([50, 250, 49, 249, 48, 248, 47, 247, 46, 246])
    const innocent = users[49]
    const email = innocent?.loginMethods[0]?.email
    expect((await failures('FAILED')).get(innocent?.externalUserId ?? '')).toBe(
      `E003: A user with email ${email} already exists in emailpassword loginMethod.`,
    )
  })

  it('fails a whole chunk when nobody is to blame', async () => {
    const users = people(12)
    await stage(users)
    const chunkFault = 'E004: the tenant is gone'
    await core.runJob({ chunkFault })
    expect([...(await failures()).values()]).toEqual(users.map(() => chunkFault))
  })

  it('lets requests pass between its chunks', async () => {
    const busy = await startStandInCore({ job: { intervalMs: 'off', parallelism: 12 } })
    await call('/bulk-import/users', { users: people(60) }, busy)
    const run = busy.runJob()
    const seen = new Set<number>()
    let count = 60
    while (count > 0) {
      count = JSON.parse((await call('/bulk-import/users/count', undefined, busy)).text).count
      seen.add(count)
    }
    await run
    await busy.close()
    expect([...seen].filter((left) => left > 0 && left < 60).length).toBeGreaterThan(0)
  })
})

describe('the job of core 12', () => {
  it('tries those whom others kept back again in the same run', async () => {
    const newer = await startStandInCore({ version: '12.1' })
    const known = person()
    await call('/bulk-import/import', known, newer)
    const bad = Array.from({ length: 3 }, () => person({ loginMethods: known.loginMethods }))
    const good = people(5)
    await call('/bulk-import/users', { users: [...bad, ...good] }, newer)
    await newer.runJob()
    const rows = await newer.query('select status from bulk_import_users')
    expect(rows).toEqual(bad.map(() => ({ status: 'FAILED' })))
    expect((await accountsByExternalId(newer)).size).toBe(1 + good.length)
    await newer.close()
  })
})

describe('the stand-in', () => {
  it('refuses bodies beyond a limit that it is given', async () => {
    const padding = 'x'.repeat(MAX_BODY_BYTES)
    expect((await call('/bulk-import/users', { users: [], padding })).status).toBe(413)
  })

  it('says nothing of staged users, as a core before 10.1.1, and imports by itself', async () => {
    const older = await startStandInCore({ listsStagedUsers: false, job: { intervalMs: 20 } })
    const { text } = await call('/bulk-import/users', { users: people(1) }, older)
    expect(text).toBe('{"status":"OK"}\n')
    await expect.poll(async () => (await accountsByExternalId(older)).size).toBe(1)
    await older.close()
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
