import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { CoreVersion } from '../../../example-app/identity-core/interface-version.js'
import { isPasswordOf } from '../../../example-app/identity-core/users/plain-password.js'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import { coreClient } from '../../../src/migration/core/open-core-client.js'
import { fileJournal } from '../../../src/migration/journal/file-journal.js'
import { USER_WARNING_CODES } from '../../../src/migration/record-validation/user-finding.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import type { IdentityReport, MigrationReport } from '../../../src/migration/run/report.js'
import { seededRandom } from '../../fuzz/random.js'
import {
  accountsByExternalId,
  type StandInCore,
  startStandInCore,
} from '../../support/stand-in-core.js'
import { type RandomLogin, type RandomRecord, randomRecords } from './random-records.js'

/** Takes a few minutes; 10,000 take about half an hour on two processors. */
const RECORDS = Number(process.env['RANDOM_RECORDS'] ?? 2000)
const SEED = Number(process.env['RANDOM_SEED'] ?? 30)
/** As the job of a core. */
const JOB_INTERVAL_MS = 300_000
/** Two or three suffice, however many conflicts there are. */
const MAX_JOB_RUNS = 5
const MAX_STEPS = 10

test.each<CoreVersion>(['10.1', '11.4'])(
  'of random records each has one account at core %s, or is named with its reason',
  async (version) => {
    const random = seededRandom(SEED)
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
    const problems = await problemsOf(records, identities, standIn)
    expect(problems).toEqual([])
  },
)

/** What is wrong: an identity without an account and without a reason, or with which nobody signs in. */
async function problemsOf(
  records: readonly RandomRecord[],
  identities: ReadonlyMap<string, IdentityReport>,
  standIn: StandInCore,
): Promise<string[]> {
  const accounts = await accountsByExternalId(standIn)
  const logins = await loginsOf(standIn)
  return records.flatMap(({ externalUserId, loginMethods }, index) => {
    const identity = identities.get(externalUserId)
    const about = `record ${index} (${identity?.state} ${identity?.code ?? ''})`
    if (identity === undefined) return [`${about} is not known`]
    if (identity.state !== 'reconciled') {
      const isNamed = identity.code !== undefined || (identity.errors?.length ?? 0) > 0
      return isNamed ? [] : [`${about} has no reason`]
    }
    const account = accounts.get(externalUserId)
    if (account === undefined) return [`${about} has no account`]
    if (account !== identity.coreUserId) return [`${about} is said to have another account`]
    const own = logins.get(account) ?? []
    const isWhole =
      own.length === loginMethods.length &&
      loginMethods.every((login) => own.some(({ password_hash }) => isStored(login, password_hash)))
    return isWhole ? [] : [`${about} cannot sign in by each login`]
  })
}

/** Whether a sign-in by the login method passes with what is stored of its password. */
function isStored(
  { passwordHash, plainTextPassword }: RandomLogin,
  stored: string | null,
): boolean {
  if (typeof passwordHash === 'string') return passwordHash === stored
  if (typeof plainTextPassword !== 'string') return stored === null
  return stored?.startsWith('$scrypt$') === true && isPasswordOf(plainTextPassword, stored)
}

interface Login {
  readonly account_id: string
  readonly password_hash: string | null
}

/** By account: logins that a sign-in finds in the public tenant. */
async function loginsOf({ query }: StandInCore): Promise<ReadonlyMap<string, Login[]>> {
  const rows = await query<Login>(
    `select m.account_id, m.password_hash from login_methods m
     where exists (select 1 from logins l where l.method_id = m.id and l.tenant_id = 'public')`,
  )
  const byAccount = new Map<string, Login[]>()
  for (const row of rows) {
    byAccount.set(row.account_id, [...(byAccount.get(row.account_id) ?? []), row])
  }
  return byAccount
}
