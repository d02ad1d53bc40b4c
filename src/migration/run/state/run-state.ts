import type { MigrationCounts } from '../../../base/decision/migration-event.js'
import type { UserFinding } from '../../record-validation/user-finding.js'
import { MigrationError } from '../migration-error.js'
import type { EntryOf, MigrationState, Origin, SentCall } from './journal-entry.js'

type IdentityState = keyof MigrationCounts

/**
 * The state of an identity in a run: one that reports have, or
 *
 * - `unresolved`: the run deletes its row, which the core may not have finished, and then looks it up.
 * - `to_import`: is imported directly, in a call of its own.
 */
export type IdentityCode = IdentityState | 'unresolved' | 'to_import'

const NOTHING_COUNTED: MigrationCounts = {
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

/** By position in `RunState.codes`. */
const IDENTITY_CODES: readonly IdentityCode[] = [
  ...(Object.keys(NOTHING_COUNTED) as IdentityState[]),
  'unresolved',
  'to_import',
]

/** Returns the state in reports. */
export function reportedState(code: IdentityCode): IdentityState {
  if (code === 'unresolved') return 'staged'
  return code === 'to_import' ? 'pending' : code
}

/** What the journal says of an identity: why it is in its state, or the account that it has. */
export interface IdentityDetails {
  /** The core's id of the account. */
  readonly coreUserId?: string
  /** The core's id of the row that failed. */
  readonly rowId?: string
  /** A code of the core, such as `E003`, or of this package, such as `chunk_failed` or `login_taken`. */
  readonly code?: string
  /** Why it failed, in the words of the core. */
  readonly text?: string
  /** The core's id of another account that has a login of this identity. */
  readonly heldBy?: string
  /** Why the record is invalid. */
  readonly errors?: readonly UserFinding[]
  /** Paths of the record in which the account differs, without values. */
  readonly differences?: readonly string[]
  /** Why a person accepted it or left it out. */
  readonly reason?: string
}

/** The state that results from the entries of a journal. */
export interface RunState {
  begun: EntryOf<'begun'> | undefined
  /** The preflight has passed, so staging may have begun. */
  started: boolean

  // The identities by record index, in columns: an object for each takes three times the memory.
  /** Positions in `IDENTITY_CODES`. */
  codes: Uint8Array
  /** What more is known. Of most identities that is the core's id alone, which then has no object around it. */
  details: (IdentityDetails | string | undefined)[]
  /** 0 if the record is in the source, n if it is in the n-th corrections. */
  sources: Uint16Array
  /** 1 if it was in a call. Until then, a row of the identity is not from this run. */
  wasSent: Uint8Array
  /** 1 if a row or an account may exist already, after a lost reply or a correction: it is looked up before each call. */
  isDoubtful: Uint8Array
  /** Number of identities in each state. */
  readonly tally: Map<IdentityCode, number>
  readonly corrections: Origin[]

  batches: number
  /** A call that the journal has as sent, without a result. */
  unanswered: SentCall | undefined
  /** A call without a reply may still take effect, and no `reconcile` was requested since all records were sent. */
  hasUnverifiedCall: boolean

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
  phase: EntryOf<'rest'>['phase']
  ended: EntryOf<'ended'> | undefined
}

export const createRunState = (): RunState => ({
  begun: undefined,
  started: false,
  ...columnsFor(0),
  tally: new Map(),
  corrections: [],
  batches: 0,
  unanswered: undefined,
  hasUnverifiedCall: false,
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

/** The columns of identities that are all pending. */
export const columnsFor = (identities: number) => ({
  codes: new Uint8Array(identities).fill(IDENTITY_CODES.indexOf('pending')),
  details: new Array<IdentityDetails | string | undefined>(identities),
  sources: new Uint16Array(identities),
  wasSent: new Uint8Array(identities),
  isDoubtful: new Uint8Array(identities),
})

export const sizeOf = ({ codes }: RunState): number => codes.length

/** @throws MigrationError `bad_journal` if the source has no such record. */
export function identityCode({ codes }: RunState, recordIndex: number): IdentityCode {
  const code = IDENTITY_CODES[codes[recordIndex] ?? -1]
  if (code !== undefined) return code
  throw new MigrationError('bad_journal', 'the journal names a record that the source lacks')
}

export function detailsOf({ details }: RunState, recordIndex: number): IdentityDetails {
  const known = details[recordIndex]
  return typeof known === 'string' ? { coreUserId: known } : (known ?? NO_DETAILS)
}

export const NO_DETAILS: IdentityDetails = {}

/** The number of the source that has the current record of an identity. */
export const sourceOf = ({ sources }: RunState, recordIndex: number): number =>
  sources[recordIndex] ?? 0

/**
 * Changes the state of an identity, and replaces its details by those given. A text is the core's id of its account.
 *
 * @throws MigrationError `bad_journal` if the source has no such record.
 */
export function setIdentity(
  state: RunState,
  recordIndex: number,
  code: IdentityCode,
  details?: IdentityDetails | string,
): void {
  const before = identityCode(state, recordIndex)
  state.tally.set(before, countOf(state, before) - 1)
  state.tally.set(code, countOf(state, code) + 1)
  state.codes[recordIndex] = IDENTITY_CODES.indexOf(code)
  if (details !== undefined) state.details[recordIndex] = details
}

export const countOf = ({ tally }: RunState, ...codes: readonly IdentityCode[]): number =>
  codes.reduce((sum, code) => sum + (tally.get(code) ?? 0), 0)

export function countsOf({ tally }: RunState): MigrationCounts {
  const counts: Record<keyof MigrationCounts, number> = { ...NOTHING_COUNTED }
  for (const [code, count] of tally) counts[reportedState(code)] += count
  return counts
}

/** Codes of this package. Any other code is of the core. */
const PACKAGE_CODES: ReadonlySet<string> = new Set([
  'role_missing',
  'tenant_missing',
  'feature_missing',
  'login_taken',
  'login_twice',
  'chunk_failed',
  'unknown_conflict',
])

/** Whether a record can fail or be held back with this code. */
export const isFailureCode = (code: unknown): code is string =>
  typeof code === 'string' && (PACKAGE_CODES.has(code) || /^E\d{3}$/.test(code))

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
  if (!state.started) return 'preflight'
  if (state.blocked) return 'end'
  if (state.unanswered !== undefined) return 'resolve_lost_reply'
  if (state.toDelete.size > 0) return 'delete_rows'
  if (countOf(state, 'unresolved') > 0) return 'resolve_identities'
  if (goal === 'unblock') return 'end'
  if (goal === 'migrate' && countOf(state, 'pending') > 0) return 'stage'
  if (state.phase === 'wait') return 'wait'
  if (state.phase === 'collect') return 'collect'
  // Only once no row waits: if two users have the same login, the one that was staged first must get it.
  if (goal === 'migrate' && countOf(state, 'to_import') > 0) return 'import_directly'
  return state.phase === 'reconcile' ? 'reconcile' : 'end'
}

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
