import { findHolder } from '../../account/find-account.js'
import { CoreError } from '../../core/core-error.js'
import {
  forEachConcurrently,
  type MigrationContext,
  type RunRow,
  rowEntry,
  unrecordedRows,
} from '../records.js'
import type { EntryOf } from '../state/journal-entry.js'
import type { Goal } from '../state/run-state.js'
import { decideDeletion } from './calls-and-lost-replies.js'

// Quiet: successive polls return the same counts. Stuck: quiet for a minute while rows are `PROCESSING`; one of
// them may block its chunk. Stalled: quiet, or without a change of this run's rows, for `stallMinutes`.

/** Number of consecutive empty polls that end the wait. One may miss a row whose status changes between two counts. */
const EMPTY_POLLS = 2

/** Rows that stay `PROCESSING` for this time wait for the next run of the core's import job, or are stuck. */
const QUIET_AFTER_MS = 60_000

/** The import job runs every five minutes, here with a margin. Older look-ups may be out of date. */
const JOB_PERIOD_MS = 6 * 60_000

interface Poll {
  readonly new: number
  readonly processing: number
  readonly failed: number
}

/**
 * Waits until no row of this run is queued at the core. Failed polls are repeated.
 *
 * One row that cannot be imported blocks its whole chunk, which the import job tries again in each period.
 * So the migration looks for such rows when rows have failed or nothing changes, and deletes them. If no
 * row, or no row of this run, has changed for `stallMinutes`, it journals the rows that still wait and
 * continues with all other identities.
 *
 * @throws CoreError if polls have failed for `stallMinutes`.
 */
export async function waitForImport(ctx: MigrationContext, goal: Goal): Promise<void> {
  const { timing, settings, signal } = ctx
  const stallMs = settings.stallMinutes * 60_000
  const stuckMs = Math.min(QUIET_AFTER_MS, stallMs / 2)
  let failingSince: number | undefined
  let quietMs = 0
  let polledAt = timing.elapsedMs()
  let emptyPolls = 0
  let lastPoll: Poll | undefined
  let waitingCount = Number.POSITIVE_INFINITY
  let waitingCountAt = timing.elapsedMs()

  /** Rows that are not from this run change the counts too, so this run's rows are counted every `stallMinutes`. */
  async function areWaitingRowsQuiet(): Promise<boolean> {
    if (timing.elapsedMs() - waitingCountAt < stallMs) return false
    const before = waitingCount
    waitingCount = await countWaitingRows(ctx)
    waitingCountAt = timing.elapsedMs()
    return waitingCount === before || waitingCount === 0
  }

  /** Returns whether the wait has ended. */
  async function isWaitOver(poll: Poll): Promise<boolean> {
    const isSame = JSON.stringify(poll) === JSON.stringify(lastPoll)
    const now = timing.elapsedMs()
    // While polls or look-ups fail, it is unknown whether anything changes at the core.
    if (!isSame) quietMs = 0
    else if (failingSince === undefined) quietMs += now - polledAt
    polledAt = now
    lastPoll = poll
    emptyPolls = poll.new + poll.processing === 0 ? emptyPolls + 1 : 0
    if (emptyPolls === EMPTY_POLLS) {
      await endWait(ctx, [])
      return true
    }
    const isStalled = quietMs >= stallMs || (await areWaitingRowsQuiet())
    const { lastExamination } = ctx
    const isCountNew = poll.processing !== lastExamination.processing
    const isExaminationOld = timing.elapsedMs() - lastExamination.at >= JOB_PERIOD_MS
    const isStuck = poll.processing > 0 && quietMs >= stuckMs && (isCountNew || isExaminationOld)
    const mayBlock = emptyPolls === 0 && isSame && poll.failed > lastExamination.failed
    if (!isStalled && !isStuck && !mayBlock) return false
    const { isOver, toDelete } = await examine(ctx, goal, { isStalled, newRows: poll.new })
    const { failed, processing } = poll
    ctx.lastExamination = { failed, processing: processing - toDelete, at: timing.elapsedMs() }
    return isOver
  }

  for (;;) {
    try {
      const poll = await countRows(ctx)
      ctx.emit('waiting', { rows: { new: poll.new, processing: poll.processing } })
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

type Row = EntryOf<'row'>

interface Examination {
  readonly isStalled: boolean
  /** Number of `NEW` rows, which are looked up only once the run has stalled. */
  readonly newRows: number
}

interface Examined {
  /** The wait has ended. */
  readonly isOver: boolean
  /** Number of rows that are deleted next. */
  readonly toDelete: number
}

/**
 * Looks for rows that block others: the core can never import a row whose identity has an account, or one of
 * whose logins another account has. Only `run` deletes them: `reconcile` changes nothing.
 */
async function examine(
  ctx: MigrationContext,
  goal: Goal,
  { isStalled, newRows }: Examination,
): Promise<Examined> {
  const { core, settings, signal } = ctx
  const blocking: Row[] = []
  const stalled: Row[] = []
  let waiting = isStalled ? 0 : newRows
  const rows = waitingRows(ctx, isStalled ? undefined : 'PROCESSING')
  await forEachConcurrently(rows, settings.lookUps, async (found) => {
    const { externalUserId, row: user } = found
    const holder = await findHolder(core, { externalUserId, user }, { signal })
    const heldBy = typeof holder === 'object' ? { heldBy: holder.heldBy } : {}
    const row: Row = { ...rowEntry(ctx, found), as: 'stalled', ...heldBy }
    waiting += 1
    if (holder !== undefined) blocking.push(row)
    if (isStalled) stalled.push(row)
  })
  if (goal === 'migrate' && blocking.length > 0) {
    await decideDeletion(ctx, blocking)
    return { isOver: true, toDelete: blocking.length }
  }
  // If no waiting row is from this run, there is nothing to wait for: the counts are of other rows.
  if (waiting > 0 && !isStalled) return { isOver: false, toDelete: 0 }
  await endWait(ctx, stalled)
  return { isOver: true, toDelete: 0 }
}

async function countRows({ core, signal }: MigrationContext): Promise<Poll> {
  const [fresh, processing, failed] = await Promise.all([
    core.countRows('NEW', { signal }),
    core.countRows('PROCESSING', { signal }),
    core.countRows('FAILED', { signal }),
  ])
  return { new: fresh, processing, failed }
}

async function* waitingRows(ctx: MigrationContext, status?: 'PROCESSING'): AsyncGenerator<RunRow> {
  for await (const found of unrecordedRows(ctx, status))
    if (found.row.status !== 'FAILED') yield found
}

async function countWaitingRows(ctx: MigrationContext): Promise<number> {
  let count = 0
  for await (const _ of waitingRows(ctx)) count += 1
  return count
}

/** Journals the end of the wait, and the rows that still wait, in the order of the source. */
async function endWait({ journaled }: MigrationContext, rows: readonly Row[]): Promise<void> {
  const inOrder = rows.toSorted((one, other) => one.record - other.record)
  await journaled.write([...inOrder, { type: 'rest', phase: 'collect' }])
}
