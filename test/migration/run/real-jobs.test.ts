import { expect, it, onTestFinished } from 'vitest'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import type { Timing } from '../../../src/migration/run/records.js'
import { accountsByExternalId, rowsOf, startStandInCore } from '../../support/core/stand-in-core.js'
import { memoryJournal } from './support/memory-journal.js'
import { sourceOf } from './support/people.js'
import { listOf } from './support/scene.js'

const USERS = 24
const FIVE_MINUTES = 300_000

const LOGINS = [
  (name: string) => ({
    recipeId: 'emailpassword',
    email: `${name}@mail.example`,
    passwordHash: '$2a$10$N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy',
    hashingAlgorithm: 'bcrypt',
  }),
  (name: string) => ({
    recipeId: 'thirdparty',
    thirdPartyId: 'google',
    thirdPartyUserId: name,
    email: `${name}@gmail.example`,
  }),
  (name: string) => ({ recipeId: 'passwordless', email: `${name}@link.example` }),
  (name: string) => ({
    recipeId: 'passwordless',
    phoneNumber: `+41446${name.slice('user-'.length).padStart(6, '0')}`,
  }),
]
const CODES = ['E003', 'E005', 'E006', 'E007']

const userOf = (number: number): ImportUser => {
  const name = `user-${number}`
  const login = LOGINS[number % LOGINS.length]?.(name)
  return { externalUserId: name, loginMethods: [login] } as unknown as ImportUser
}

/** Time passes with each sleep, and the job of the core runs every five minutes of it. */
function timeWithJob(runJob: () => Promise<void>): Timing & { readonly jobRuns: number } {
  let now = 0
  let jobRuns = 0
  return {
    get jobRuns() {
      return jobRuns
    },
    now: () => 1_800_000_000_000 + now,
    elapsedMs: () => now,
    async sleep(ms) {
      const isDue = Math.floor((now + ms) / FIVE_MINUTES) > Math.floor(now / FIVE_MINUTES)
      now += ms
      if (!isDue) return
      jobRuns += 1
      await runJob()
    },
  }
}

/** Users whose login another account takes, or who get their account by the hook, while a run waits. */
async function migrate(
  version: '10.1' | '11.4',
  taken: readonly number[],
  hooked: readonly number[],
) {
  const core = await startStandInCore({ version })
  onTestFinished(() => core.close())
  const client = coreClient({ baseUrl: core.url, apiKey: core.apiKey })
  const time = timeWithJob(async () => {
    if (time.jobRuns === 1) {
      for (const user of taken) {
        await client.importUser({ ...userOf(user), externalUserId: `taker-of-${user}` })
      }
      for (const user of hooked) await client.importUser(userOf(user))
    }
    await core.runJob()
  })
  const users = Array.from({ length: USERS }, (_, number) => userOf(number))
  const migration = await openMigrationWith(
    { core: client, source: sourceOf(users), journal: memoryJournal() },
    time,
  )
  const report = await migration.run()
  const identities = await listOf(migration.identities())
  const accounts = await accountsByExternalId(core)
  const rows = rowsOf(core)
  return { report, identities, accounts, rows, jobRuns: time.jobRuns }
}

it.for([
  ['10.1', 8],
  ['11.4', 1],
] as const)(
  'as core %s imports, each of %i users whose login is taken is named, after a few runs of the job',
  { timeout: 180_000 },
  async ([version, count]) => {
    const taken = Array.from({ length: count }, (_, index) => 1 + 2 * index)
    const hooked = count === 1 ? [] : [0, 2]
    const { report, identities, accounts, jobRuns } = await migrate(version, taken, hooked)
    expect(report).toMatchObject({
      state: 'to_correct',
      counts: { failed: count, reconciled: USERS - count },
    })
    expect(jobRuns).toBeLessThanOrEqual(3)
    const failed = identities.filter(({ state }) => state === 'failed')
    expect(
      failed.map(({ externalUserId, code, heldBy }) => [externalUserId, code, heldBy]),
    ).toEqual(
      taken.map((user) => [
        `user-${user}`,
        CODES[user % CODES.length],
        accounts.get(`taker-of-${user}`),
      ]),
    )
    for (const { externalUserId, state, coreUserId } of identities) {
      if (state === 'reconciled') expect(accounts.get(externalUserId)).toBe(coreUserId)
    }
  },
)
