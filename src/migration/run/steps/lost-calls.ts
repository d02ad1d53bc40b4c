import type { CoreError } from '../../core/core-error.js'
import type { Work } from '../migration-context.js'

/** Number of consecutive calls without a reply that end a run. The next run continues. */
const MAX_LOST_IN_A_ROW = 3

/** Counts a call without a reply or an effect. @throws CoreError `error`, if there were too many in a row. */
export function countLostCall(work: Work, error: CoreError | undefined): void {
  if (error === undefined) return
  work.lostInARow += 1
  if (work.lostInARow >= MAX_LOST_IN_A_ROW) throw error
}
