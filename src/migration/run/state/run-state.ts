import type { MigrationCounts } from '../../../base/decision/migration-event.js'
import { MigrationError } from '../migration-error.js'
import {
  type Identity,
  type IdentityCode,
  type IdentityDetails,
  reportedState,
} from './identity-state.js'
import type { EntryOf, Origin, RestPhase } from './journal-entry.js'

export interface SentBatch {
  readonly kind: 'stage'
  readonly batch: number
  readonly recordIndexes: readonly number[]
}

export interface SentDeletion {
  readonly kind: 'delete'
  readonly rows: readonly string[]
}

/** The state that results from the entries of a journal. */
export interface RunState {
  begun: EntryOf<'begun'> | undefined
  /** The preflight has passed, so staging may have begun. */
  started: boolean

  /** By record index. */
  identities: readonly Identity[]
  /** Number of identities in each state. */
  readonly tally: Map<IdentityCode, number>
  readonly corrections: Origin[]

  batches: number
  /** A call that the journal has as sent, without a result. */
  unanswered: SentBatch | SentDeletion | undefined
  /** A call without a reply may still take effect, and no `reconcile` was requested since all records were sent. */
  hasUnverifiedCall: boolean
  /** Maximum users per call, lowered when the core refuses a call as too large. */
  batchLimit: number

  /** Rows that are not from this run but have an identity of the source. */
  readonly foreignRows: Set<string>
  /** Rows of this run that are recorded and not deleted, by id, with the record index of each. */
  readonly rows: Map<string, number>
  readonly toDelete: Set<string>
  /** Rows of `toDelete` that the core may import first, so their identities are looked up after the deletion. */
  readonly toResolve: Set<string>
  /** Rows that still waited at the core when the run stalled, by id. */
  readonly stalledRows: Map<string, EntryOf<'row'>>
  /** A deletion did not account for each row: nothing is sent until a person requests `reconcile`. */
  blocked: boolean

  /** What is left to do once nothing is left to send. */
  phase: RestPhase
  ended: EntryOf<'ended'> | undefined
}

export const createRunState = (): RunState => ({
  begun: undefined,
  started: false,
  identities: [],
  tally: new Map(),
  corrections: [],
  batches: 0,
  unanswered: undefined,
  hasUnverifiedCall: false,
  batchLimit: Number.POSITIVE_INFINITY,
  foreignRows: new Set(),
  rows: new Map(),
  toDelete: new Set(),
  toResolve: new Set(),
  stalledRows: new Map(),
  blocked: false,
  phase: 'reconcile',
  ended: undefined,
})

/** Nothing has been sent or corrected yet, so the source or the core may still be replaced. */
export const mayRestart = ({ started, corrections }: RunState): boolean =>
  !started && corrections.length === 0

export const sizeOf = (state: RunState): number => state.identities.length

/** @throws MigrationError `bad_journal` if the source has no such record. */
export function identityAt(state: RunState, recordIndex: number): Identity {
  const identity = state.identities[recordIndex]
  if (identity !== undefined) return identity
  throw new MigrationError('bad_journal', 'the journal names a record that the source lacks')
}

export const identityCode = (state: RunState, recordIndex: number): IdentityCode =>
  identityAt(state, recordIndex).state

/**
 * Changes the state of an identity, and replaces its details by those given.
 *
 * @throws MigrationError `bad_journal` if the source has no such record.
 */
export function setIdentity(
  state: RunState,
  recordIndex: number,
  code: IdentityCode,
  details?: IdentityDetails,
): void {
  const identity = identityAt(state, recordIndex)
  state.tally.set(identity.state, countOf(state, identity.state) - 1)
  state.tally.set(code, countOf(state, code) + 1)
  identity.state = code
  if (details !== undefined) identity.details = details
}

export const countOf = ({ tally }: RunState, ...codes: readonly IdentityCode[]): number =>
  codes.reduce((sum, code) => sum + (tally.get(code) ?? 0), 0)

export const NOTHING_COUNTED: MigrationCounts = {
  invalid: 0,
  pending: 0,
  staged: 0,
  failed: 0,
  missing: 0,
  differs: 0,
  shared: 0,
  reconciled: 0,
  accepted: 0,
  left_out: 0,
}

export function countsOf({ tally }: RunState): MigrationCounts {
  const counts: Record<keyof MigrationCounts, number> = { ...NOTHING_COUNTED }
  for (const [code, count] of tally) counts[reportedState(code)] += count
  return counts
}
