import { deleteRowsOfUnfailed } from './apply-rows.js'
import { IDENTITY, type IdentityCode } from './identity-state.js'
import type { Entry, EntryOf } from './journal-entry.js'
import { assertOrdinal } from './record-indexes.js'
import { awaitRest, countOf, type RunState, setIdentity, sizeOf, stateOf } from './run-state.js'

type LookUpEntry = Extract<Entry, { readonly type: 'looked_up' | 'reconciled' | 'reconcile_asked' }>

export function applyLookUps(state: RunState, entry: LookUpEntry): void {
  switch (entry.type) {
    case 'looked_up':
      lookedUp(state, entry)
      return
    case 'reconciled':
      state.reconciled = true
      return
    case 'reconcile_asked':
      lookAgain(state)
  }
}

function lookedUp(state: RunState, entry: EntryOf<'looked_up'>): void {
  for (const [ordinal] of entry.same) set(state, ordinal, IDENTITY.reconciled)
  for (const [ordinal] of entry.differs) set(state, ordinal, IDENTITY.differs)
  for (const [ordinal] of entry.missing) set(state, ordinal, IDENTITY.missing)
  for (const [ordinal] of entry.shared) set(state, ordinal, IDENTITY.shared)
  deleteRowsOfUnfailed(state)
}

const LOOKED_UP_ANEW: ReadonlySet<IdentityCode> = new Set([
  IDENTITY.missing,
  IDENTITY.differs,
  IDENTITY.shared,
  IDENTITY.reconciled,
])

/** Identities that a person accepted or left out keep their state. */
function lookAgain(state: RunState): void {
  if (countOf(state, IDENTITY.pending, IDENTITY.again) === 0) state.lostSinceLook = false
  for (let ordinal = 0; ordinal < sizeOf(state); ordinal++) {
    if (LOOKED_UP_ANEW.has(stateOf(state, ordinal))) setIdentity(state, ordinal, IDENTITY.staged)
  }
  awaitRest(state)
  if (!state.blocked) return
  state.blocked = false
  state.deleting = [...state.toDelete]
}

function set(state: RunState, ordinal: number, code: IdentityCode): void {
  assertOrdinal(ordinal, sizeOf(state))
  setIdentity(state, ordinal, code)
}
