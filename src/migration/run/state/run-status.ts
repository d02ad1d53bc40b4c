import type { MigrationState } from '../report.js'
import { IDENTITY } from './identity-state.js'
import { nextStep } from './next-step.js'
import { countOf, type RunState, sizeOf } from './run-state.js'

/** Where a run stands by its journal: what its last step ended with, if nothing came after that. */
export function standingOf(state: RunState): MigrationState {
  return state.ended?.state ?? restingState(state)
}

/** What a run that has nothing left to do by itself has come to. */
export function restingState(state: RunState): MigrationState {
  if (state.blocked) return 'to_reconcile'
  if (state.stalledRows.size > 0) return 'stalled'
  if (nextStep(state, 'finish') !== 'end') return 'interrupted'
  if (countOf(state, IDENTITY.invalid, IDENTITY.failed) > 0) return 'to_correct'
  return isProved(state) ? 'complete' : 'to_reconcile'
}

/** No count of rows says so: each identity has been looked up, or a person has decided on it. */
const isProved = (state: RunState): boolean =>
  state.rows.size === 0 &&
  countOf(state, IDENTITY.reconciled, IDENTITY.accepted, IDENTITY.left_out) === sizeOf(state)
