import { countOf, type RunState, sizeOf } from './run-state.js'

/** The state of a run. This list is closed. */
export type MigrationState =
  /** Each identity is reconciled, accepted or left out. */
  | 'complete'
  /** Records need corrections; see `identities()`. */
  | 'to_correct'
  /** Nothing waits at the core, but not every identity is verified. */
  | 'to_reconcile'
  /** Rows of this run still wait at the core, where nothing has changed for `stallMinutes`. */
  | 'stalled'
  /** The step ended early, for example by its signal; `run` continues. */
  | 'interrupted'
  /** The core lacks something that the source needs, or has rows that are not from this run. */
  | 'preflight_failed'
  /** The core cannot be reached, refuses a call or sends an unexpected reply. */
  | 'core_fault'

export type RunStep =
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

/** `verify` looks up identities and sends nothing. `unblock` only deletes rows and looks up their identities. */
export type Goal = 'migrate' | 'verify' | 'unblock'

/**
 * Returns the next step of a run, from its journal alone. A call with unknown outcome is resolved before
 * anything else is sent, rows are deleted before their identities are sent again, and identities are
 * reconciled only after the wait for their rows.
 */
export function nextStep(state: RunState, goal: Goal): RunStep {
  if (!state.started) return goal === 'migrate' ? 'preflight' : 'end'
  if (state.blocked) return 'end'
  if (state.unanswered !== undefined) return 'resolve_lost_reply'
  if (state.toDelete.size > 0) return 'delete_rows'
  if (countOf(state, 'unresolved') > 0) return 'resolve_identities'
  if (goal === 'unblock') return 'end'
  if (goal === 'migrate' && hasUnsent(state)) return 'stage'
  if (state.phase === 'wait') return 'wait'
  if (state.phase === 'collect') return 'collect'
  // Only once no row waits: if two users have the same login, the one that was staged first must get it.
  if (goal === 'migrate' && countOf(state, 'to_import') > 0) return 'import_directly'
  return state.phase === 'reconcile' ? 'reconcile' : 'end'
}

const hasUnsent = (state: RunState): boolean => countOf(state, 'pending', 'retry') > 0

/** The state of a run from its journal: the result of its last step, if nothing was journaled after it. */
export function runStatus(state: RunState): MigrationState {
  return state.ended?.state ?? finalState(state)
}

/** The state of a run whose steps have ended. */
export function finalState(state: RunState): MigrationState {
  if (state.blocked) return 'to_reconcile'
  if (state.stalledRows.size > 0) return 'stalled'
  if (nextStep(state, 'migrate') !== 'end') return 'interrupted'
  if (countOf(state, 'invalid', 'failed') > 0) return 'to_correct'
  return isProved(state) ? 'complete' : 'to_reconcile'
}

/** Row counts prove nothing: each identity must have been looked up, or a person must have decided on it. */
const isProved = (state: RunState): boolean =>
  state.rows.size === 0 && countOf(state, 'reconciled', 'accepted', 'left_out') === sizeOf(state)
