import { IDENTITY } from './identity-state.js'
import { countOf, type RunState } from './run-state.js'

/** What a run does next: a closed list. */
export type Step =
  | 'preflight'
  | 'resolve_batch'
  | 'resolve_deletion'
  | 'delete_rows'
  | 'settle'
  | 'stage'
  | 'wait'
  | 'collect'
  | 'import_alone'
  | 'reconcile'
  | 'end'

/** `look`: nothing is sent, what is there is looked at. `unblock`: rows leave and are settled, no more. */
export type Aim = 'finish' | 'look' | 'unblock'

/**
 * The next step of a run, from its journal alone. What is undecided is decided before anything else
 * is sent; rows leave before their identities are sent anew; only what has come to rest is reconciled.
 */
export function nextStep(state: RunState, aim: Aim): Step {
  if (!state.started) return aim === 'finish' ? 'preflight' : 'end'
  if (state.blocked) return 'end'
  if (state.undecided !== undefined) return 'resolve_batch'
  if (state.deleting !== undefined) return 'resolve_deletion'
  if (state.toDelete.size > 0) return 'delete_rows'
  if (countOf(state, IDENTITY.unsettled) > 0) return 'settle'
  if (aim === 'unblock') return 'end'
  if (aim === 'finish' && hasUnsent(state)) return 'stage'
  if (!state.waited) return 'wait'
  if (!state.collected) return 'collect'
  // Once nothing waits: of two with one login, the one that was staged first has it.
  if (aim === 'finish' && countOf(state, IDENTITY.alone) > 0) return 'import_alone'
  if (!state.reconciled) return 'reconcile'
  return 'end'
}

const hasUnsent = (state: RunState): boolean => countOf(state, IDENTITY.pending, IDENTITY.again) > 0
