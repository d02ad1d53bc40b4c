import type { MigrationState } from '../report.js'
import { IDENTITY } from './identity-state.js'
import { nextStep } from './next-step.js'
import { countOf, type RunState, sizeOf } from './run-state.js'

/** The state of a run from its journal: the result of its last step, if nothing was journaled after it. */
export function standingOf(state: RunState): MigrationState {
  return state.ended?.state ?? restingState(state)
}

/** The state of a run whose steps have ended. */
export function restingState(state: RunState): MigrationState {
  if (state.blocked) return 'to_reconcile'
  if (state.stalledRows.size > 0) return 'stalled'
  if (nextStep(state, 'finish') !== 'end') return 'interrupted'
  if (countOf(state, IDENTITY.invalid, IDENTITY.failed) > 0) return 'to_correct'
  return isProved(state) ? 'complete' : 'to_reconcile'
}

/** Row counts are no proof: each identity must have been looked up, or a person must have decided on it. */
const isProved = (state: RunState): boolean =>
  state.rows.size === 0 &&
  countOf(state, IDENTITY.reconciled, IDENTITY.accepted, IDENTITY.left_out) === sizeOf(state)
