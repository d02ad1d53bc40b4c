import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  asking,
  type CoreUnderTest,
  JOB_TIMEOUT_MS,
  openCore,
  uniqueName,
} from './core-under-test.js'
import { type Conflict, expectText } from './known-faults.js'
import { person, phoneNumber, withPassword, withPhone, withProvider } from './people.js'

// One staging for all cases: a core runs its job every five minutes. One conflict keeps back all of its
// chunk: set bulk_migration_parallelism to 32, and each row is a chunk of its own.

const LOOK_AGAIN_MS = 5000
/** A given core has run its job twice by then: a row that still waits is never ended. */
const STUCK_AFTER_MS = 660_000

interface Row {
  readonly id: string
  readonly externalUserId: string
  readonly status: string
  readonly errorMessage?: string
}

let core: CoreUnderTest
let role: string
let rows: Row[]
const address = () => `${uniqueName('user')}@example.com`

const known = person()
const guest = person({ loginMethods: [withProvider(address())] })
const knownEmail = address()
const knownNumber = phoneNumber()
const caller = person({ loginMethods: [withPhone(knownNumber, { email: knownEmail })] })

const plain = person({ userMetadata: { team: 'blue' } })
const linked = person({
  loginMethods: [withPassword(address(), { isPrimary: true }), withProvider(address())],
})
const sameEmail = person({ loginMethods: known.loginMethods })
const samePair = person({ loginMethods: guest.loginMethods })
const samePasswordless = person({
  loginMethods: [{ recipeId: 'passwordless', email: knownEmail }],
})
const sameNumber = person({ loginMethods: [withPhone(knownNumber)] })
const sameId = person({ externalUserId: known.externalUserId })
const twin = person()
const removed = person()
const ofLostRole = person()
let lostRole: string

beforeAll(async () => {
  core = await openCore()
  role = await core.makeRole(uniqueName('role'))
  lostRole = await core.makeRole(uniqueName('role'))
  for (const user of [known, guest, caller]) expect((await core.importUser(user)).status).toBe(200)
  const hasLinking = core.features.has('account_linking') || core.features.has('mfa')
  const staged = await core.stage([
    { ...plain, ...{ userRoles: [{ role, tenantIds: ['public'] }] } },
    ...(hasLinking ? [linked] : []),
    sameEmail,
    samePair,
    samePasswordless,
    sameNumber,
    sameId,
    twin,
    removed,
    { ...ofLostRole, ...{ userRoles: [{ role: lostRole, tenantIds: ['public'] }] } },
  ])
  const twins = await core.stage([twin])
  await core.post('/recipe/role/remove', { role: lostRole })
  await core.post('/bulk-import/users/remove', { ids: idsIn(staged.json, removed) })
  const own = new Set([...idsIn(staged.json), ...idsIn(twins.json)])
  await core.runJob()
  rows = await rowsThatAreLeft(own)
}, JOB_TIMEOUT_MS)
afterAll(() => core?.close())

interface Staged {
  readonly users: readonly { userId: string; loginMethods: readonly { userId: string }[] }[]
}

function idsIn({ users }: Staged, user?: { readonly externalUserId: string }): string[] {
  return users
    .filter(({ userId }) => user === undefined || userId === user.externalUserId)
    .flatMap(({ loginMethods }) => loginMethods.map(({ userId }) => userId))
}

/** Those of the rows that are left when none changes any more. */
async function rowsThatAreLeft(own: ReadonlySet<string>): Promise<Row[]> {
  let before: string | undefined
  const end = Date.now() + STUCK_AFTER_MS
  for (;;) {
    const found: Row[] = []
    let paginationToken: string | undefined
    do {
      const page = paginationToken === undefined ? {} : { paginationToken }
      const { json } = await core.get(`/bulk-import/users${asking({ limit: '500', ...page })}`)
      found.push(...json.users.filter(({ id }: Row) => own.has(id)))
      paginationToken = json.nextPaginationToken
    } while (paginationToken !== undefined)
    const isOver = found.every(({ status }) => status === 'FAILED') || Date.now() >= end
    const now = JSON.stringify(found.map(({ id, status }) => [id, status]))
    if ((isOver && now === before) || !core.isGiven) return found
    before = now
    await delay(LOOK_AGAIN_MS)
  }
}

function textsOf(user: { readonly externalUserId: string }): (string | undefined)[] {
  return rows
    .filter(({ externalUserId }) => externalUserId === user.externalUserId)
    .map(({ errorMessage }) => errorMessage)
}

/** The one row of the user has failed with this text, or stays as a core of this version keeps it. */
function expectNamed(
  user: { readonly externalUserId: string },
  conflict: Conflict,
  text: unknown,
): void {
  const [row, ...others] = rows.filter((each) => each.externalUserId === user.externalUserId)
  expect(others).toEqual([])
  expectText({ version: core.version, conflict }, row?.errorMessage ?? row?.status, text)
}

async function accountOf(user: { readonly externalUserId: string }) {
  const { json } = await core.get(`/user/id${asking({ userId: user.externalUserId })}`)
  return json
}

describe('the job', () => {
  it('makes the account and deletes the row', async () => {
    expect(textsOf(plain)).toEqual([])
    expect((await accountOf(plain)).user.id).toBe(plain.externalUserId)
    const userId = asking({ userId: plain.externalUserId })
    const roles = await core.get(`/recipe/user/roles${userId}`)
    expect(roles.json.roles).toEqual([role])
    const metadata = await core.get(`/recipe/user/metadata${userId}`)
    expect(metadata.json.metadata).toEqual({ team: 'blue' })
  })

  it('links the methods of a user with a primary one', async (test) => {
    if (!core.features.has('account_linking') && !core.features.has('mfa')) {
      return test.skip('the licence has no account linking')
    }
    const { user } = await accountOf(linked)
    expect(user.isPrimaryUser).toBe(true)
    expect(user.loginMethods).toHaveLength(2)
  })

  it('fails a row whose login another account holds, and says which', async () => {
    const email = known.loginMethods[0]?.email
    expectNamed(
      sameEmail,
      'beside',
      `E003: A user with email ${email} already exists in emailpassword loginMethod.`,
    )
    expectNamed(
      samePair,
      'provider',
      expect.stringMatching(/^E005: A user with thirdPartyId google and thirdPartyUserId esa-/),
    )
    expectNamed(
      samePasswordless,
      'passwordless',
      `E006: A user with email ${knownEmail} already exists in passwordless loginMethod.`,
    )
    expectNamed(
      sameNumber,
      'passwordless',
      `E007: A user with phoneNumber ${knownNumber} already exists in passwordless loginMethod.`,
    )
    for (const user of [sameEmail, samePair, samePasswordless, sameNumber]) {
      expect((await accountOf(user)).status).toBe('UNKNOWN_USER_ID_ERROR')
    }
  })

  it('fails a row whose external id is taken', async () => {
    expectNamed(
      sameId,
      'external_id',
      `E031: A user with externalId ${known.externalUserId} already exists`,
    )
  })

  it('makes one account of a user who was staged twice', async () => {
    expect((await accountOf(twin)).user.id).toBe(twin.externalUserId)
    expect(textsOf(twin)).toEqual([
      expect.stringMatching(/^(E003: |E031: |\[externalUserId .* is not unique\.)/),
    ])
  })

  it('imports no row that was removed before', async () => {
    expect((await accountOf(removed)).status).toBe('UNKNOWN_USER_ID_ERROR')
  })

  it('fails a row whose role is gone', () => {
    expect(textsOf(ofLostRole)).toEqual([
      expect.stringMatching(/^(\[Role .* does not exist\.\]|E034: Role does not exist!)/),
    ])
  })
})
