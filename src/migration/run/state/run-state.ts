import type { MigrationCounts } from '../../../base/decision/migration-event.js'
import { type IdentityCode, REPORTED_STATE } from './identity-state.js'
import type { EntryOf, Origin, RestPhase } from './journal-entry.js'
import { assertRecordIndex, readRecordIndexes } from './record-indexes.js'

export interface SentBatch {
  readonly kind: 'stage'
  readonly batch: number
  readonly recordIndexes: readonly number[]
}

export interface SentDeletion {
  readonly kind: 'delete'
  readonly rows: readonly string[]
}

/** The state that results from the entries of a journal. It takes a few bytes per identity. */
export interface RunState {
  begun: EntryOf<'begun'> | undefined
  /** The preflight has passed, so staging may have begun. */
  started: boolean

  /** The `IDENTITY_STATE` of each record. */
  identities: Uint8Array
  /** For each record the number of its failure code (see `numberOf`), or 0. */
  failureCodes: Uint8Array
  /** For each record 0 if it is in the source, n if it is in the n-th corrections. */
  recordSource: Uint16Array
  /** For each record 1 once it was in a call. Until then, a row of the identity is not from this run. */
  wasSent: Uint8Array
  /** For each record 1 once it was in a call without a reply, which may still take effect. */
  hadLostReply: Uint8Array
  /** Number of identities in each state, by `IDENTITY_STATE`. */
  readonly tally: number[]
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

export function createRunState(): RunState {
  return {
    begun: undefined,
    started: false,
    identities: new Uint8Array(0),
    failureCodes: new Uint8Array(0),
    recordSource: new Uint16Array(0),
    wasSent: new Uint8Array(0),
    hadLostReply: new Uint8Array(0),
    tally: REPORTED_STATE.map((): number => 0),
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
  }
}

/** Nothing has been sent or corrected yet, so the source or the core may still be replaced. */
export const mayRestart = ({ started, corrections }: RunState): boolean =>
  !started && corrections.length === 0

export const sizeOf = (state: RunState): number => state.identities.length

export const identityCode = (state: RunState, recordIndex: number): IdentityCode =>
  state.identities[recordIndex] as IdentityCode

export function setIdentity(state: RunState, recordIndex: number, code: IdentityCode): void {
  const before = identityCode(state, recordIndex)
  state.tally[before] = (state.tally[before] ?? 0) - 1
  state.tally[code] = (state.tally[code] ?? 0) + 1
  state.identities[recordIndex] = code
}

/** @throws MigrationError `bad_journal` if the source has no such record. */
export function setAll(state: RunState, recordIndexes: string, code: IdentityCode): void {
  for (const recordIndex of readRecordIndexes(recordIndexes, sizeOf(state)))
    setIdentity(state, recordIndex, code)
}

/** @throws MigrationError `bad_journal` if the source has no such record. */
export function setOne(state: RunState, recordIndex: number, code: IdentityCode): void {
  assertRecordIndex(recordIndex, sizeOf(state))
  setIdentity(state, recordIndex, code)
}

export const countOf = (state: RunState, ...codes: readonly IdentityCode[]): number =>
  codes.reduce<number>((sum, code) => sum + (state.tally[code] ?? 0), 0)

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

export function countsOf(state: RunState): MigrationCounts {
  const counts: Record<keyof MigrationCounts, number> = { ...NOTHING_COUNTED }
  REPORTED_STATE.forEach((name, code) => {
    counts[name] += state.tally[code] ?? 0
  })
  return counts
}

/** Rows may be waiting at the core again: the run must wait, collect and reconcile again. */
export function markUnsettled(state: RunState): void {
  state.phase = 'wait'
}

/** Identities must be looked up again, but no row waits at the core. */
export function markUnreconciled(state: RunState): void {
  if (state.phase === 'done') state.phase = 'reconcile'
}
