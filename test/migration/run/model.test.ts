import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ImportUser } from '../../../src/migration/core/import-user.js'
import type { Migration } from '../../../src/migration/run/migration.js'
import { openMigrationWith } from '../../../src/migration/run/open-migration.js'
import type { MigrationReport } from '../../../src/migration/run/report.js'
import { memoryJournal } from './support/memory-journal.js'
import { people, person, sourceOf } from './support/people.js'
import { type Fate, type SimulatedCore, simulatedCore } from './support/simulated-core.js'
import { type SimulatedTime, simulatedTime } from './support/simulated-time.js'

/** The process is killed: nothing of it goes on, and the next one has the journal alone. */
class Killed extends Error {}

const SETTLE_SECONDS = 10
const MOST_PROCESSES = 60
const MOST_STEPS = 20_000
/** Some seconds' worth; `MODEL_RUNS` makes a longer search. */
const RUNS = Number(process.env['MODEL_RUNS'] ?? 15)

interface Story {
  readonly users: number
  readonly batchUsers: number
  readonly fates: readonly Fate[]
  /** After how many appends or calls each process is killed; and whether the append was kept. */
  readonly kills: readonly { readonly after: number; readonly kept: boolean }[]
  /** When the hook imports which user. */
  readonly hook: readonly { readonly afterMs: number; readonly user: number }[]
  /** Whose e-mail address another account has. */
  readonly conflicts: readonly number[]
  /** Of the conflicts: whether they get another address, or are left out. */
  readonly mends: readonly boolean[]
  readonly jobUsers: number
  readonly jobEveryMs: number
}

const inTime: fc.Arbitrary<Fate> = fc.oneof(
  fc.constantFrom<Fate[]>('done', 'lost before', 'lost after', 'refused'),
  fc
    .integer({ min: 1, max: SETTLE_SECONDS * 1000 - 100 })
    .map((landsAfterMs) => ({ landsAfterMs })),
)

const late: fc.Arbitrary<Fate> = fc.oneof(
  inTime,
  fc.integer({ min: 1, max: 90_000 }).map((landsAfterMs) => ({ landsAfterMs })),
)

const storyWith = (fate: fc.Arbitrary<Fate>): fc.Arbitrary<Story> =>
  fc.record({
    users: fc.integer({ min: 1, max: 25 }),
    batchUsers: fc.integer({ min: 1, max: 9 }),
    fates: fc.array(fate, { maxLength: 12 }),
    kills: fc.array(fc.record({ after: fc.integer({ min: 1, max: 40 }), kept: fc.boolean() }), {
      maxLength: 8,
    }),
    hook: fc.array(
      fc.record({
        afterMs: fc.integer({ min: 0, max: 60_000 }),
        user: fc.integer({ min: 0, max: 24 }),
      }),
      { maxLength: 6 },
    ),
    conflicts: fc.uniqueArray(fc.integer({ min: 0, max: 24 }), { maxLength: 3 }),
    mends: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
    jobUsers: fc.integer({ min: 1, max: 10 }),
    jobEveryMs: fc.integer({ min: 500, max: 9000 }),
  })

/** Processes follow one another until the migration is complete; a person corrects and reconciles. */
async function live(story: Story) {
  const time = simulatedTime()
  const fates = [...story.fates]
  const kills = [...story.kills]
  let untilKill = kills[0]?.after ?? Number.POSITIVE_INFINITY
  let steps = 0
  const step = (): void => {
    steps += 1
    if (steps > MOST_STEPS) throw new Error(`no end: ${journal.lines.slice(-20).join('\n')}`)
    untilKill -= 1
    if (untilKill <= 0) throw new Killed()
  }
  const core = simulatedCore({ time, fate: () => fates.shift() ?? 'done', onCall: step })
  begin(story, core, time)
  const journal = memoryJournal([], (lines) => {
    const { kept } = kills[0] ?? { kept: false }
    try {
      step()
    } catch (killed) {
      if (kept) journal.lines.push(...lines)
      throw killed
    }
  })
  const reports: MigrationReport[] = []
  for (let process = 0; process < MOST_PROCESSES; process++) {
    // What lands after the last look at the core is seen by the next.
    const isOver = !time.isAwaited()
    try {
      const report = await runOnce({ core, time, journal, story, last: reports.at(-1) })
      reports.push(report)
      if (report.state === 'complete' && isOver) return { core, report, reports }
    } catch (error) {
      if (!(error instanceof Killed)) throw error
      kills.shift()
      untilKill = kills[0]?.after ?? Number.POSITIVE_INFINITY
    }
  }
  throw new Error('the migration does not come to an end')
}

function begin(story: Story, core: SimulatedCore, time: SimulatedTime): void {
  const records = people(story.users)
  for (const user of story.conflicts) {
    core.importNow({ ...person(`user-${user}`), externalUserId: `other-${user}` } as ImportUser)
  }
  for (const { afterMs, user } of story.hook) {
    const record = records[user]
    if (record !== undefined) time.at(afterMs, () => core.importNow(record as ImportUser))
  }
  time.every(story.jobEveryMs, () => core.runJob(story.jobUsers))
}

interface Process {
  readonly core: SimulatedCore
  readonly time: SimulatedTime
  readonly journal: ReturnType<typeof memoryJournal>
  readonly story: Story
  /** Of the process before. */
  readonly last: MigrationReport | undefined
}

async function runOnce({ core, time, journal, story, last }: Process): Promise<MigrationReport> {
  const corrections = sourceOf(correctionsOf(story), 'corrections')
  const isCorrected = journal.lines.some((line) => line.startsWith('{"type":"corrected"'))
  const migration = await openMigrationWith(
    {
      core,
      journal,
      source: sourceOf(people(story.users)),
      batchUsers: story.batchUsers,
      settleSeconds: SETTLE_SECONDS,
      pollSeconds: 2,
      lookUps: 2,
      corrections: isCorrected ? [corrections] : [],
    },
    time,
  )
  return next(migration, { last, isCorrected, corrections })
}

function next(
  migration: Migration,
  about: {
    last: MigrationReport | undefined
    isCorrected: boolean
    corrections: ReturnType<typeof sourceOf>
  },
): Promise<MigrationReport> {
  if (about.last?.state === 'to_correct' && !about.isCorrected) {
    return migration.correct(about.corrections)
  }
  const isLookedAt = about.last?.state === 'complete' || about.last?.state === 'to_reconcile'
  return isLookedAt ? migration.reconcile() : migration.run()
}

const isMended = (story: Story, user: number): boolean =>
  story.mends[story.conflicts.indexOf(user)] === true

const correctionsOf = (story: Story): object[] =>
  story.conflicts
    .filter((user) => user < story.users)
    .map((user) => {
      const id = `user-${user}`
      if (!isMended(story, user)) return { leaveOut: id, reason: 'has an account of old' }
      const [method] = person(id).loginMethods
      const loginMethods = [{ ...method, email: `${id}@elsewhere.example` }]
      return { replaces: id, user: person(id, { loginMethods }) }
    })

type Lived = Awaited<ReturnType<typeof live>>

function judge({ core, report, reports }: Lived, story: Story): void {
  const conflicts = story.conflicts.filter((user) => user < story.users)
  const leftOut = conflicts.filter((user) => !isMended(story, user))
  expect(report.counts).toMatchObject({
    reconciled: story.users - leftOut.length,
    left_out: leftOut.length,
  })
  expect(reports.some(({ state }) => state === 'to_correct')).toBe(conflicts.length > 0)
  for (let user = 0; user < story.users; user++) {
    expect(core.accounts.has(`user-${user}`)).toBe(!leftOut.includes(user))
  }
  expect(core.rows_).toEqual([])
}

describe('a run whose core loses replies, whose hook is at work and that is killed', () => {
  it('stages nobody twice while the core ends its calls in time', async () => {
    await fc.assert(
      fc.asyncProperty(storyWith(inTime), async (story) => {
        const lived = await live(story)
        judge(lived, story)
        expect(lived.reports.map(({ state }) => state)).not.toContain('to_reconcile')
        for (const [id, times] of lived.core.staged) {
          const isAgain = story.conflicts.includes(Number(id.slice('user-'.length)))
          expect(times).toBeLessThanOrEqual(isAgain ? 2 : 1)
        }
      }),
      { numRuns: RUNS },
    )
  })

  it('brings each identity to one account, however late its calls end', async () => {
    await fc.assert(
      fc.asyncProperty(storyWith(late), async (story) => judge(await live(story), story)),
      { numRuns: RUNS },
    )
  })
})
