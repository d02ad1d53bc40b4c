import type { MigrationCounts } from '../report.js'
import { COUNTED_AS, type IdentityCode } from './identity-state.js'
import type { EntryOf, Origin, StalledRow } from './journal-entry.js'

/** A call that was begun and of which the journal does not tell the end. */
export interface UndecidedBatch {
  readonly batch: number
  readonly ordinals: readonly number[]
}

/** The sum of a journal's entries. Of an identity it holds a few bytes, whatever has happened. */
export interface RunState {
  begun: EntryOf<'begun'> | undefined
  /** The preflight has passed, and staging may have begun. */
  started: boolean

  /** By ordinal: an `IDENTITY`. */
  identities: Uint8Array
  /** By ordinal: the number of the E-code with which it failed, or 0. */
  failureCodes: Uint8Array
  /** By ordinal: 0 for the source, else which of the corrections has the record. */
  recordsFrom: Uint16Array
  /** By ordinal: 1 once it was in a call. Rows of others are not touched. */
  sentOnce: Uint8Array
  /** By ordinal: 1 once it was in a call without reply that was not seen to land, and may land yet. */
  lostOnce: Uint8Array
  /** How many identities are in each state, by `IDENTITY`. */
  readonly tally: number[]
  readonly corrections: Origin[]

  batches: number
  undecided: UndecidedBatch | undefined
  /** A call without reply may land yet, and nobody has asked for a look since all were sent. */
  lostSinceLook: boolean
  /** Users in a call, once a core has found one too large. */
  batchLimit: number

  /** Rows of others that have an identity of the source. */
  readonly foreignRows: Set<string>
  /** Own rows that are recorded and not deleted, with the identity of each. */
  readonly rows: Map<string, number>
  readonly toDelete: Set<string>
  /** Rows of `toDelete` that the core's job may import first: their identities are looked up afterwards. */
  readonly toResolve: Set<string>
  /** Rows that still waited at the core when the run stalled, by id. */
  readonly stalledRows: Map<string, StalledRow>
  deleting: readonly string[] | undefined
  /** A deletion did not account for each row: nothing more is sent until somebody has looked. */
  blocked: boolean

  waited: boolean
  collected: boolean
  reconciled: boolean
  ended: EntryOf<'ended'> | undefined
}

export function createRunState(): RunState {
  return {
    begun: undefined,
    started: false,
    identities: new Uint8Array(0),
    failureCodes: new Uint8Array(0),
    recordsFrom: new Uint16Array(0),
    sentOnce: new Uint8Array(0),
    lostOnce: new Uint8Array(0),
    tally: COUNTED_AS.map((): number => 0),
    corrections: [],
    batches: 0,
    undecided: undefined,
    lostSinceLook: false,
    batchLimit: Number.POSITIVE_INFINITY,
    foreignRows: new Set(),
    rows: new Map(),
    toDelete: new Set(),
    toResolve: new Set(),
    stalledRows: new Map(),
    deleting: undefined,
    blocked: false,
    waited: true,
    collected: true,
    reconciled: false,
    ended: undefined,
  }
}

/** Nothing has been sent or decided: a source that was checked, or its core, may still be another. */
export const mayBeginAgain = ({ started, corrections }: RunState): boolean =>
  !started && corrections.length === 0

export const sizeOf = (state: RunState): number => state.identities.length

export const stateOf = (state: RunState, ordinal: number): IdentityCode =>
  state.identities[ordinal] as IdentityCode

export function setIdentity(state: RunState, ordinal: number, code: IdentityCode): void {
  const before = stateOf(state, ordinal)
  state.tally[before] = (state.tally[before] ?? 0) - 1
  state.tally[code] = (state.tally[code] ?? 0) + 1
  state.identities[ordinal] = code
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
  COUNTED_AS.forEach((name, code) => {
    counts[name] += state.tally[code] ?? 0
  })
  return counts
}

/** Something may wait at the core again, and nobody has looked for what became of it. */
export function awaitRest(state: RunState): void {
  state.waited = false
  state.collected = false
  state.reconciled = false
}
