import type { CoreError } from '../../core/core-error.js'
import type { Work } from '../migration-context.js'

/** Calls without reply in a row after which a run gives up; the next one goes on. */
const MAX_LOST_IN_A_ROW = 3

/** Counts a call that has had no effect. @throws CoreError the given one, at the last that is borne. */
export function countLostCall(work: Work, error: CoreError | undefined): void {
  if (error === undefined) return
  work.lostInARow += 1
  if (work.lostInARow >= MAX_LOST_IN_A_ROW) throw error
}
