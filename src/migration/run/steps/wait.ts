import { CoreError } from '../../core/core-error.js'
import type { Work } from '../work.js'

/** The job takes rows between two polls: one moment without rows proves nothing. */
const EMPTY_POLLS = 2

interface Poll {
  readonly new: number
  readonly processing: number
}

/**
 * Waits until nothing waits at the core. Polls that fail are repeated.
 *
 * @returns `'stalled'` when nothing has changed for `stallMinutes`.
 * @throws CoreError when the polls have failed for as long.
 */
export async function wait(work: Work): Promise<'stalled' | undefined> {
  const { timing, settings, signal } = work
  const stallMs = settings.stallMinutes * 60_000
  let changedAt = timing.elapsedMs()
  let emptyPolls = 0
  let last: Poll | undefined
  for (;;) {
    const poll = await countRows(work)
    if (!(poll instanceof CoreError)) {
      if (poll.new !== last?.new || poll.processing !== last.processing) {
        changedAt = timing.elapsedMs()
      }
      last = poll
      work.tell('waiting', { rows: poll })
      emptyPolls = poll.new + poll.processing === 0 ? emptyPolls + 1 : 0
      if (emptyPolls === EMPTY_POLLS) break
    }
    if (timing.elapsedMs() - changedAt >= stallMs) {
      if (poll instanceof CoreError) throw poll
      return 'stalled'
    }
    await timing.sleep(settings.pollSeconds * 1000, signal)
  }
  await work.ledger.write({ type: 'waited' })
  return undefined
}

async function countRows({ core, signal }: Work): Promise<Poll | CoreError> {
  try {
    const [fresh, processing] = await Promise.all([
      core.countRows('NEW', { signal }),
      core.countRows('PROCESSING', { signal }),
    ])
    return { new: fresh, processing }
  } catch (error) {
    if (error instanceof CoreError) return error
    throw error
  }
}
