import type { CoreClient } from '../../../../src/migration/core/core-client.js'
import type { ImportUser } from '../../../../src/migration/core/import-user.js'
import { MigrationError } from '../../../../src/migration/run/migration-error.js'
import { openMigrationWith } from '../../../../src/migration/run/open-migration.js'
import type { MigrationReport } from '../../../../src/migration/run/report.js'
import { type CorrectionDesk, correctionDesk } from './correction-desk.js'
import { type MemoryJournal as Journal, memoryJournal } from './memory-journal.js'
import { people, person, sourceOf } from './people.js'
import { watchResends } from './resend-watch.js'
import { type SimulatedCore, simulatedCore } from './simulated-core.js'
import { type SimulatedTime, simulatedTime } from './simulated-time.js'
import { mendedPeople, SETTLE_SECONDS, type Story } from './story.js'

/** The process is killed: nothing of it goes on, and the next one has the journal alone. */
class Killed extends Error {}

/** A person who reconciles again has waited. */
const BETWEEN_LOOKS_MS = 10_000

/** Enough for calls that land late one after another, and for kills. */
const MAX_PROCESSES = 150
const MAX_STEPS = 20_000

/** Processes follow one another until the migration is complete; a person corrects and reconciles. */
export async function live(story: Story) {
  const time = simulatedTime()
  const fates = [...story.fates]
  const kills = [...story.kills]
  let untilKill = kills[0]?.after ?? Number.POSITIVE_INFINITY
  let steps = 0
  const step = (): void => {
    steps += 1
    if (steps > MAX_STEPS) throw new Error(`no end: ${journal.lines.slice(-20).join('\n')}`)
    untilKill -= 1
    if (untilKill <= 0) throw new Killed()
  }
  const blames = [...story.blames]
  const core = simulatedCore({
    time,
    fate: () => fates.shift() ?? 'done',
    blame: () => blames.shift() ?? 'culprit',
    poison: new Set(story.poison.map((user) => `user-${user}`)),
    onCall: step,
  })
  const watch = watchResends(core, time)
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
  const desk = correctionDesk(story, journal)
  let corrected = 0
  for (let process = 0; process < MAX_PROCESSES; process++) {
    // What lands after the last look at the core is seen by the next.
    const isOver = !time.isAwaited()
    const last = reports.at(-1)
    if (isLookedAt(last)) time.pass(BETWEEN_LOOKS_MS)
    if (story.hookIsFirst && last?.state === 'to_correct') {
      for (const user of mendedPeople(story)) core.importNow(user as ImportUser)
    }
    watch.begin()
    try {
      const watched = { ...core, stageUsers: watch.stageUsers }
      const isCorrected = desk.applied().length > corrected
      const report = await runOnce({ core: watched, time, journal, story, desk, last, isCorrected })
      reports.push(report)
      corrected = desk.applied().length
      if (report.state === 'complete' && isOver)
        return { core, report, reports, resent: watch.offences, leftOut: desk.leftOut() }
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
    const other = { ...person(`user-${user}`), externalUserId: `other-${user}` } as ImportUser
    if (story.conflictsAreLate) core.importLater(other)
    else core.importNow(other)
  }
  for (const { afterMs, user } of story.taken) {
    const other = { ...person(`user-${user}`), externalUserId: `taker-${user}` } as ImportUser
    time.at(afterMs, () => core.importNow(other))
  }
  for (const { afterMs, user } of story.hook) {
    const record = records[user]
    if (record !== undefined) time.at(afterMs, () => core.importNow(record as ImportUser))
  }
  time.every(story.jobEveryMs, () => core.runJob(story.jobUsers))
}

interface Process {
  readonly core: CoreClient
  readonly time: SimulatedTime
  readonly journal: Journal
  readonly story: Story
  readonly desk: CorrectionDesk
  /** What the last process that was not killed has reported. */
  readonly last: MigrationReport | undefined
  /** A correction of what `last` reports was written down before its process was killed. */
  readonly isCorrected: boolean
}

async function runOnce({ core, time, journal, story, desk, last, isCorrected }: Process) {
  const migration = await openMigrationWith(
    {
      core,
      journal,
      source: sourceOf(people(story.users)),
      batchUsers: story.batchUsers,
      settleSeconds: SETTLE_SECONDS,
      pollSeconds: 2,
      stallMinutes: 3,
      lookUps: 2,
      corrections: desk.applied(),
    },
    time,
  )
  if (last?.state === 'to_correct' && !isCorrected) {
    return migration.correct(await desk.write(migration))
  }
  if (last?.state === 'stalled') {
    // A process that was killed in it may have done it all.
    return migration.unblock().catch((error) => {
      if (error instanceof MigrationError) return migration.run()
      throw error
    })
  }
  return isLookedAt(last) ? migration.reconcile() : migration.run()
}

const isLookedAt = (last: MigrationReport | undefined): boolean =>
  last?.state === 'complete' || last?.state === 'to_reconcile'
