import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import { USER_WARNING_CODES } from '../../../src/migration/record-validation/user-finding.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import type { IdentityReport, MigrationReport } from '../../../src/migration/run/report.js'
import { Random } from '../../simulation/clock.js'
import { askCore } from '../../support/core/core-client.js'
import type { CoreVersion } from '../../support/core/identity-core/interface-version.js'
import {
  accountsByExternalId,
  type StandInCore,
  startStandInCore,
} from '../../support/core/stand-in-core.js'
import {
  HASHED_PASSWORD,
  type RandomLogin,
  type RandomRecord,
  randomRecords,
} from './random-records.js'

/** 10,000 take a minute for each core. */
const RECORDS = Number(process.env['RANDOM_RECORDS'] ?? 2000)
const SEED = Number(process.env['RANDOM_SEED'] ?? 30)
/** As the job of a core. */
const JOB_INTERVAL_MS = 300_000
/** Two or three suffice, however many conflicts there are. */
const MAX_JOB_RUNS = 5
const MAX_STEPS = 10
const WRONG_PASSWORD_CHANCE = 0.1

it.each<CoreVersion>(['10.1', '11.4'])(
  'of random records each has one account at core %s, or is named with its reason',
  async (version) => {
    const random = new Random(SEED)
    const records = randomRecords(random, RECORDS)
    const before = records.filter(() => random.chance(0.02))
    const meanwhile = records.filter(() => random.chance(0.01))
    let elapsedMs = 0
    const clock = () => Date.now() + elapsedMs
    const standIn = await startStandInCore({ version, clock, roles: ['member'] })
    const folder = await mkdtemp(join(tmpdir(), 'esa-random-'))
    onTestFinished(async () => {
      await standIn.close()
      await rm(folder, { recursive: true, force: true })
    })
    const core = coreClient({ baseUrl: standIn.url, apiKey: standIn.apiKey })
    const importAs = (user: RandomRecord, externalUserId: string) =>
      core.importUser({ ...user, externalUserId } as unknown as ImportUser).catch(() => undefined)

    for (const [index, user] of before.entries()) await importAs(user, `before ${index}`)
    let jobRuns = 0
    let jobAtMs = JOB_INTERVAL_MS
    const sleep = async (ms: number, signal: AbortSignal) => {
      signal.throwIfAborted()
      elapsedMs += ms
      if (elapsedMs < jobAtMs) return
      jobAtMs = elapsedMs + JOB_INTERVAL_MS
      if (jobRuns === 0) {
        // The hook imports who signs up: as the record says, or somebody else with that login.
        for (const [index, user] of meanwhile.entries()) {
          await importAs(user, index % 2 === 0 ? user.externalUserId : `meanwhile ${index}`)
        }
      }
      jobRuns += 1
      await standIn.runJob()
    }
    const migration = await openMigrationWith(
      {
        core,
        source: {
          name: 'random',
          records: async function* () {
            yield* records
          },
        },
        journal: await fileJournal(join(folder, 'journal')),
        acceptWarnings: [...USER_WARNING_CODES],
      },
      { now: clock, elapsedMs: () => elapsedMs, sleep },
    )
    onTestFinished(() => migration.close())

    let report: MigrationReport = await migration.run()
    for (let step = 1; step < MAX_STEPS && report.state === 'stalled'; step += 1) {
      await migration.unblock()
      report = await migration.run()
    }
    console.log(`core ${version}: ${report.state} after ${jobRuns} runs of the job`, report.counts)
    expect(report.state).toBe('to_correct')
    expect(jobRuns).toBeLessThanOrEqual(MAX_JOB_RUNS)

    const identities = new Map<string, IdentityReport>()
    for await (const identity of migration.identities()) {
      identities.set(identity.externalUserId, identity)
    }
    const problems = await problemsOf(records, { identities, standIn, random })
    expect(problems).toEqual([])
  },
)

interface End {
  readonly identities: ReadonlyMap<string, IdentityReport>
  readonly standIn: StandInCore
  readonly random: Random
}

/** What is wrong: an identity without an account and without a reason, or with which nobody signs in. */
async function problemsOf(
  records: readonly RandomRecord[],
  { identities, standIn, random }: End,
): Promise<string[]> {
  const accounts = await accountsByExternalId(standIn)
  const loginCounts = countLogins(standIn)
  const problems: string[] = []
  const complain = (text: string) => void problems.push(text)
  let signIns = 0
  for (const [index, record] of records.entries()) {
    const { externalUserId, loginMethods } = record
    const identity = identities.get(externalUserId)
    const about = `record ${index} (${identity?.state} ${identity?.code ?? ''})`
    if (identity?.state !== 'reconciled') {
      const isNamed = identity?.code !== undefined || (identity?.errors?.length ?? 0) > 0
      if (!isNamed) complain(`${about} has no reason`)
      continue
    }
    const account = accounts.get(externalUserId)
    if (account === undefined) complain(`${about} has no account`)
    else if (account !== identity.coreUserId) complain(`${about} is said to have another account`)
    else if (loginCounts.get(account) !== loginMethods.length) complain(`${about} lacks a login`)
    for (const login of loginMethods.filter(({ recipeId }) => recipeId === 'emailpassword')) {
      signIns += 1
      const isWrongTried = random.chance(WRONG_PASSWORD_CHANCE)
      if (!(await isUserOf(login, { externalUserId, isWrongTried, standIn }))) {
        complain(`${about} cannot sign in with the password alone`)
      }
    }
  }
  expect(signIns).toBeGreaterThan(records.length / 4)
  return problems
}

interface SignIn {
  readonly externalUserId: string
  /** Whether a wrong password is tried too. */
  readonly isWrongTried: boolean
  readonly standIn: StandInCore
}

/** Whether the password of the record signs in its user, and another nobody. */
async function isUserOf(
  { email, plainTextPassword = HASHED_PASSWORD }: RandomLogin,
  { externalUserId, isWrongTried, standIn }: SignIn,
): Promise<boolean> {
  if (isWrongTried) {
    const { body } = await askCore(standIn, '/recipe/signin', {
      email,
      password: `${plainTextPassword}x`,
    })
    if (body.status !== 'WRONG_CREDENTIALS_ERROR') return false
  }
  const { body } = await askCore(standIn, '/recipe/signin', { email, password: plainTextPassword })
  return body.status === 'OK' && body.user.id === externalUserId
}

/** By account: how many login methods a sign-in finds in the public tenant. */
function countLogins({ tables }: StandInCore): ReadonlyMap<string, number> {
  const found = new Set(
    [...tables.logins].flatMap(([key, id]) => (key.startsWith('public ') ? id : [])),
  )
  const counts = [...tables.accounts.values()].map(({ id, methods }): [string, number] => {
    return [id, methods.filter(({ superTokensUserId }) => found.has(superTokensUserId)).length]
  })
  return new Map(counts.filter(([, count]) => count > 0))
}
