import { CoreError } from '../../core/core-error.js'
import type { Work } from '../migration-context.js'
import type { StalledRow } from '../state/journal-entry.js'
import type { Aim } from '../state/next-step.js'
import { countWaitingRows, decideDeletion, endWait, examineWaitingRows } from './waiting-rows.js'

/** The job takes rows between two polls: one moment without rows proves nothing. */
const EMPTY_POLLS = 2

/** Rows that are `PROCESSING` for so long wait for the job's next run, or are stuck. */
const JOB_IS_QUIET_MS = 60_000

/** The job runs every five minutes. After a run of it, look-ups before it may be out of date. */
const JOB_HAS_RUN_MS = 6 * 60_000

interface Poll {
  readonly new: number
  readonly processing: number
  readonly failed: number
}

/**
 * Waits until no row of this run waits at the core. Polls that fail are repeated.
 *
 * One row that cannot be imported keeps its whole chunk back, and the job tries a chunk once a run. So
 * the run looks for such rows when rows have failed and when nothing changes, and deletes them. When
 * no row, or none of this run, has changed for `stallMinutes`, it writes down the rows that still wait,
 * and goes on with all other identities.
 *
 * @throws CoreError when polls have failed for `stallMinutes`.
 */
export async function wait(work: Work, aim: Aim): Promise<void> {
  const { timing, settings, signal } = work
  const stallMs = settings.stallMinutes * 60_000
  const stuckMs = Math.min(JOB_IS_QUIET_MS, stallMs / 2)
  let failingSince: number | undefined
  let quietMs = 0
  let polledAt = timing.elapsedMs()
  let emptyPolls = 0
  let last: Poll | undefined
  let ownRows = Number.POSITIVE_INFINITY
  let ownRowsAt = timing.elapsedMs()

  /** Rows of others change the counts, too: now and then the rows of this run are counted alone. */
  async function areOwnRowsQuiet(): Promise<boolean> {
    if (timing.elapsedMs() - ownRowsAt < stallMs) return false
    const before = ownRows
    ownRows = await countWaitingRows(work)
    ownRowsAt = timing.elapsedMs()
    return ownRows === before || ownRows === 0
  }

  /** Returns true when the wait is over. */
  async function isWaitOver(poll: Poll): Promise<boolean> {
    const isSame = JSON.stringify(poll) === JSON.stringify(last)
    const now = timing.elapsedMs()
    // While polls or look-ups fail, nobody knows whether the core is quiet.
    if (!isSame) quietMs = 0
    else if (failingSince === undefined) quietMs += now - polledAt
    polledAt = now
    last = poll
    emptyPolls = poll.new + poll.processing === 0 ? emptyPolls + 1 : 0
    if (emptyPolls === EMPTY_POLLS) {
      await endWait(work, [])
      return true
    }
    const isStalled = quietMs >= stallMs || (await areOwnRowsQuiet())
    const { examined } = work
    const isNew = poll.processing !== examined.processing
    const isOld = timing.elapsedMs() - examined.at >= JOB_HAS_RUN_MS
    const isStuck = poll.processing > 0 && quietMs >= stuckMs && (isNew || isOld)
    const mayBlock = emptyPolls === 0 && isSame && poll.failed > examined.failed
    if (!isStalled && !isStuck && !mayBlock) return false
    const { isOver, toDelete } = await examine(work, aim, { isStalled, untried: poll.new })
    const { failed, processing } = poll
    work.examined = { failed, processing: processing - toDelete, at: timing.elapsedMs() }
    return isOver
  }

  for (;;) {
    try {
      const poll = await countRows(work)
      work.tell('waiting', { rows: { new: poll.new, processing: poll.processing } })
      if (await isWaitOver(poll)) return
      failingSince = undefined
    } catch (error) {
      if (!(error instanceof CoreError)) throw error
      failingSince ??= timing.elapsedMs()
      if (timing.elapsedMs() - failingSince >= stallMs) throw error
    }
    await timing.sleep(settings.pollSeconds * 1000, signal)
  }
}

interface Examination {
  readonly isStalled: boolean
  /** Rows that are `NEW`: they are looked up only once the run has stalled. */
  readonly untried: number
}

interface Examined {
  /** The wait is over. */
  readonly isOver: boolean
  /** How many rows are deleted next. */
  readonly toDelete: number
}

/** Looks for rows that block others. Only a run deletes them: `reconcile` changes nothing. */
async function examine(
  work: Work,
  aim: Aim,
  { isStalled, untried }: Examination,
): Promise<Examined> {
  const blocking: StalledRow[] = []
  const stalled: StalledRow[] = []
  let waiting = isStalled ? 0 : untried
  await examineWaitingRows(work, isStalled ? undefined : 'PROCESSING', ({ isBlocking, ...row }) => {
    waiting += 1
    if (isBlocking) blocking.push(row)
    if (isStalled) stalled.push(row)
  })
  if (aim === 'finish' && blocking.length > 0) {
    await decideDeletion(work, blocking)
    return { isOver: true, toDelete: blocking.length }
  }
  // If no row is of this run, the core counts rows of others.
  if (waiting > 0 && !isStalled) return { isOver: false, toDelete: 0 }
  await endWait(work, stalled)
  return { isOver: true, toDelete: 0 }
}

async function countRows({ core, signal }: Work): Promise<Poll> {
  const [fresh, processing, failed] = await Promise.all([
    core.countRows('NEW', { signal }),
    core.countRows('PROCESSING', { signal }),
    core.countRows('FAILED', { signal }),
  ])
  return { new: fresh, processing, failed }
}
