import { CoreError } from '../../core/core-error.js'
import type { LeftRow } from '../state/entry.js'
import type { Aim } from '../state/next-step.js'
import type { Work } from '../work.js'
import { examineWaitingRows, leave, withdraw } from './waiting-rows.js'

/** The job takes rows between two polls: one moment without rows proves nothing. */
const EMPTY_POLLS = 2

/** Rows that the job has taken up and not ended after so long wait for its next run, or are stuck. */
const JOB_IS_QUIET_MS = 60_000

/** The job runs five minutes after it has ended: another account may have taken a login since a look-up. */
const JOB_HAS_RUN_MS = 6 * 60_000

interface Poll {
  readonly new: number
  readonly processing: number
  readonly failed: number
}

/**
 * Waits until nothing of this run waits at the core. Polls that fail are repeated.
 *
 * One row that cannot be imported keeps its whole chunk back, and the job tries a chunk once a run. So
 * rows that block others are withdrawn: looked for when rows have failed, and when nothing moves. When
 * nothing has moved for `stallMinutes`, the rows that are left are written down, and the run goes on with
 * whoever has come to rest.
 *
 * @throws CoreError when polls have failed for `stallMinutes`.
 */
export async function wait(work: Work, aim: Aim): Promise<void> {
  const { timing, settings, signal } = work
  const stallMs = settings.stallMinutes * 60_000
  const stuckMs = Math.min(JOB_IS_QUIET_MS, stallMs / 2)
  let failingSince: number | undefined
  let changedAt = timing.elapsedMs()
  let emptyPolls = 0
  let last: Poll | undefined

  /** Whether there is nothing to wait for. */
  async function judge(poll: Poll): Promise<boolean> {
    const isSame = JSON.stringify(poll) === JSON.stringify(last)
    if (!isSame || failingSince !== undefined) changedAt = timing.elapsedMs()
    last = poll
    emptyPolls = poll.new + poll.processing === 0 ? emptyPolls + 1 : 0
    if (emptyPolls === EMPTY_POLLS) {
      await leave(work, [])
      return true
    }
    const quietMs = timing.elapsedMs() - changedAt
    const isStalled = quietMs >= stallMs
    const { examined } = work
    const isNew = poll.processing !== examined.processing
    const isOld = timing.elapsedMs() - examined.at >= JOB_HAS_RUN_MS
    const isStuck = poll.processing > 0 && quietMs >= stuckMs && (isNew || isOld)
    const mayBlock = emptyPolls === 0 && isSame && poll.failed > examined.failed
    if (!isStalled && !isStuck && !mayBlock) return false
    const { isOver, withdrawn } = await examine(work, aim, { isStalled, untried: poll.new })
    const { failed, processing } = poll
    work.examined = { failed, processing: processing - withdrawn, at: timing.elapsedMs() }
    return isOver
  }

  for (;;) {
    try {
      const poll = await countRows(work)
      work.tell('waiting', { rows: { new: poll.new, processing: poll.processing } })
      if (await judge(poll)) return
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
  /** Rows that the job has not taken up. Until the run has stalled they are not looked at. */
  readonly untried: number
}

interface Examined {
  /** The waiting ends. */
  readonly isOver: boolean
  /** Rows that are deleted next. */
  readonly withdrawn: number
}

/** Who only looks takes nothing away. */
async function examine(
  work: Work,
  aim: Aim,
  { isStalled, untried }: Examination,
): Promise<Examined> {
  const blocking: LeftRow[] = []
  const left: LeftRow[] = []
  let waiting = isStalled ? 0 : untried
  await examineWaitingRows(work, isStalled ? undefined : 'PROCESSING', ({ isBlocking, ...row }) => {
    waiting += 1
    if (isBlocking) blocking.push(row)
    if (isStalled) left.push(row)
  })
  if (aim === 'finish' && blocking.length > 0) {
    await withdraw(work, blocking)
    return { isOver: true, withdrawn: blocking.length }
  }
  // Without one of this run, those that the core counts are others' rows.
  if (waiting > 0 && !isStalled) return { isOver: false, withdrawn: 0 }
  await leave(work, left)
  return { isOver: true, withdrawn: 0 }
}

async function countRows({ core, signal }: Work): Promise<Poll> {
  const [fresh, processing, failed] = await Promise.all([
    core.countRows('NEW', { signal }),
    core.countRows('PROCESSING', { signal }),
    core.countRows('FAILED', { signal }),
  ])
  return { new: fresh, processing, failed }
}
