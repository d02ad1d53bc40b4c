import type { MigrationState } from '../report.js'
import { IDENTITY } from './identity-state.js'
import { countOf, type RunState, sizeOf } from './run-state.js'

export type Step =
  | 'preflight'
  | 'resolve_lost_reply'
  | 'delete_rows'
  | 'resolve_identities'
  | 'stage'
  | 'wait'
  | 'collect'
  | 'import_directly'
  | 'reconcile'
  | 'end'

/** `look` looks up identities and sends nothing. `unblock` only deletes rows and looks up their identities. */
export type Aim = 'finish' | 'look' | 'unblock'

/**
 * Returns the next step of a run, from its journal alone. A call with unknown outcome is resolved before
 * anything else is sent, rows are deleted before their identities are sent again, and identities are
 * reconciled only after the wait for their rows.
 */
export function nextStep(state: RunState, aim: Aim): Step {
  if (!state.started) return aim === 'finish' ? 'preflight' : 'end'
  if (state.blocked) return 'end'
  if (state.unanswered !== undefined) return 'resolve_lost_reply'
  if (state.toDelete.size > 0) return 'delete_rows'
  if (countOf(state, IDENTITY.unresolved) > 0) return 'resolve_identities'
  if (aim === 'unblock') return 'end'
  if (aim === 'finish' && hasUnsent(state)) return 'stage'
  if (state.phase === 'wait') return 'wait'
  if (state.phase === 'collect') return 'collect'
  // Only once no row waits: if two users have the same login, the one that was staged first must get it.
  if (aim === 'finish' && countOf(state, IDENTITY.to_import) > 0) return 'import_directly'
  return state.phase === 'reconcile' ? 'reconcile' : 'end'
}

const hasUnsent = (state: RunState): boolean => countOf(state, IDENTITY.pending, IDENTITY.again) > 0

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
