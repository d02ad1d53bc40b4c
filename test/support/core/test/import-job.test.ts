import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { askCore } from '../core-client.js'
import type { CoreVersion } from '../identity-core/interface-version.js'
import {
  accountsByExternalId,
  deleteAllRows,
  rowsOf,
  runJobToEnd,
  type StandInCore,
  startStandInCore,
} from '../stand-in-core.js'

/** Of bcrypt's form; no password belongs to it. */
const HASH = '$2a$11$dAiQz0sH3LgyEVHDjBHVfeZbFqOFtPs9MdhpRbHBwFtkVMcEiEnJq'

function withPassword(email: string, change: object = {}) {
  const hash = { passwordHash: HASH, hashingAlgorithm: 'bcrypt' }
  const joined = { timeJoinedInMSSinceEpoch: 1_700_000_000_000 }
  return { recipeId: 'emailpassword', email, ...hash, ...joined, ...change }
}

/** Somebody with an e-mail address and a password, whom no core knows. */
function person<Change extends object>(change?: Change) {
  const name = `esa-user-${randomUUID().slice(0, 13)}`
  const loginMethods = [withPassword(`${name}@example.com`)]
  return { externalUserId: name, loginMethods, ...(change as Change) }
}

// What the recordings do not show: how many rows share a chunk, and what happens at once.

const core = await startStandInCore({ tenants: ['shop'] })
afterAll(() => core.close())
afterEach(() => deleteAllRows(core))

const post = (path: string, body: object, on: StandInCore = core) => askCore(on, path, body)

async function stage(users: readonly object[], on: StandInCore = core): Promise<void> {
  expect((await post('/bulk-import/users', { users }, on)).status).toBe(200)
}

const rowIds = (status: 'FAILED' | 'PROCESSING') =>
  rowsOf(core).flatMap((row) => (row.status === status ? String(row.user['externalUserId']) : []))

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
    await post('/bulk-import/import', known)
    const bad = Array.from({ length: 2 }, () => person({ loginMethods: known.loginMethods }))
    const first = people(3)
    const second = people(3)
    await stage([...bad, ...first, ...second])
    await core.runJob()
    expect(rowIds('PROCESSING')).toEqual(idsOf([...bad.slice(1), ...first]))
    expect(await missing(second)).toEqual([])
    await core.runJob()
    expect(rowIds('PROCESSING')).toEqual(idsOf(first.slice(0, 2)))
    await core.runJob()
    expect(await missing(first)).toEqual([])
    expect(rowIds('FAILED')).toEqual(idsOf(bad))
  })

  it('names whoever has the place in the chunk that the conflict has among 100 statements', async () => {
    const known = people(4)
    for (const user of known) await post('/bulk-import/import', user)
    const taken = new Map([50, 150, 250, 350].map((place, index) => [place, known[index]]))
    const users = people(400).map((user, place) => {
      return { ...user, loginMethods: taken.get(place)?.loginMethods ?? user.loginMethods }
    })
    await stage(users)
    const blamed: number[] = []
    for (let run = 0; run < 5; run++) {
      await core.runJob()
      const places = rowIds('FAILED').map((id) => idsOf(users).indexOf(id))
      blamed.push(...places.filter((place) => !blamed.includes(place)).toSorted((a, b) => a - b))
    }
    // As recorded of core 11.4.7: all after the first two are innocent.
    expect(blamed).toEqual([50, 250, 49, 249, 48, 248, 47, 247, 46, 246])
    const innocent = rowsOf(core).find(({ user }) => user['externalUserId'] === idsOf(users)[49])
    const email = users[49]?.loginMethods[0]?.email
    expect(innocent?.errorMessage).toBe(
      `E003: A user with email ${email} already exists in emailpassword loginMethod.`,
    )
  })

  it('of core 12 tries those whom others kept back again', async () => {
    const newer = await startStandInCore({ version: '12.1' })
    const known = person()
    await post('/bulk-import/import', known, newer)
    const bad = Array.from({ length: 3 }, () => person({ loginMethods: known.loginMethods }))
    await stage([...bad, ...people(5)], newer)
    await newer.runJob()
    expect(rowsOf(newer).map(({ status }) => status)).toEqual(bad.map(() => 'FAILED'))
    expect((await accountsByExternalId(newer)).size).toBe(1 + 5)
    await newer.close()
  })

  it('makes the account of a row that is deleted under way, up to 11.4', async () => {
    const user = person()
    await stage([user])
    const run = core.runJob()
    await new Promise(setImmediate)
    expect(rowIds('PROCESSING')).toEqual([user.externalUserId])
    deleteAllRows(core)
    await run
    expect(await missing([user])).toEqual([])
  })
})

describe.each<CoreVersion>(['10.1', '11.4', '12.1'])('core %s', (version) => {
  it('gives a login to one of those who want it at once, and refuses the others', async () => {
    const own = await startStandInCore({ version })
    const { loginMethods } = person()
    const rivals = people(5).map((user) => ({ ...user, loginMethods }))
    const staged = person({ loginMethods })
    await stage([staged], own)
    const [replies] = await Promise.all([
      Promise.all(rivals.map((user) => post('/bulk-import/import', user, own))),
      runJobToEnd(own),
    ])
    const made = replies.filter(({ status }) => status === 200).length
    const texts = replies.flatMap(({ body }) => body.errors ?? [])
    expect(texts.every((text: string) => text.startsWith('E003: '))).toBe(true)
    expect({ made: made + 1 - rowsOf(own).length, accounts: own.tables.accounts.size }).toEqual({
      made: 1,
      accounts: 1,
    })
    await own.close()
  })
})

it.each(['10.1', '11.4'] as const)(
  'core %s names a login that another account holds in a further tenant',
  async (version) => {
    const own = await startStandInCore({
      version,
      tenants: ['shop'],
    })
    const email = 'tenant@example.com'
    const loginIn = (...tenantIds: string[]) => [withPassword(email, { tenantIds })]
    await post('/bulk-import/import', person({ loginMethods: loginIn('shop') }), own)
    await stage([person({ loginMethods: loginIn('public', 'shop') })], own)
    await own.runJob()
    expect(rowsOf(own)[0]?.errorMessage?.replace(/[0-9a-f-]{36}/, 'of the core')).toBe(
      `E014: We tried to add the userId of the core to the tenantId shop but another user with email ${email} already exists.`,
    )
    await own.close()
  },
)
