import { IDENTITY } from './identity-state.js'
import { countOf, type RunState } from './run-state.js'

export type Step =
  | 'preflight'
  | 'resolve_batch'
  | 'resolve_deletion'
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
  if (state.undecided !== undefined) return 'resolve_batch'
  if (state.deleting !== undefined) return 'resolve_deletion'
  if (state.toDelete.size > 0) return 'delete_rows'
  if (countOf(state, IDENTITY.unresolved) > 0) return 'resolve_identities'
  if (aim === 'unblock') return 'end'
  if (aim === 'finish' && hasUnsent(state)) return 'stage'
  if (!state.waited) return 'wait'
  if (!state.collected) return 'collect'
  // Only once no row waits: if two users have the same login, the one that was staged first must get it.
  if (aim === 'finish' && countOf(state, IDENTITY.to_import) > 0) return 'import_directly'
  if (!state.reconciled) return 'reconcile'
  return 'end'
}

const hasUnsent = (state: RunState): boolean => countOf(state, IDENTITY.pending, IDENTITY.again) > 0
