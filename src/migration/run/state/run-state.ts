import type { MigrationCounts } from '../../../base/decision/migration-event.js'
import type { UserFinding } from '../../record-validation/user-finding.js'
import { MigrationError } from '../migration-error.js'
import type { EntryOf, Origin, RestPhase } from './journal-entry.js'

type IdentityState = keyof MigrationCounts

/**
 * The state of an identity in a run: one that reports have, or
 *
 * - `retry`: is sent again, after a look-up of its row and its account.
 * - `sent`: its batch has no reply yet.
 * - `existing`: has an account or a row, no matter how it was created.
 * - `unresolved`: the run deletes its row, which the core may not have finished, and then looks it up.
 * - `to_import`: is imported directly, in a call of its own.
 */
export type IdentityCode =
  | IdentityState
  | 'retry'
  | 'sent'
  | 'existing'
  | 'unresolved'
  | 'to_import'

const REPORTED_AS: Readonly<Partial<Record<IdentityCode, IdentityState>>> = {
  retry: 'pending',
  sent: 'staged',
  existing: 'staged',
  unresolved: 'staged',
  to_import: 'pending',
}

/** Returns the state in reports. */
export const reportedState = (state: IdentityCode): IdentityState =>
  REPORTED_AS[state] ?? (state as IdentityState)

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

/** One identity of the source. */
export interface Identity {
  state: IdentityCode
  /** 0 if its record is in the source, n if it is in the n-th corrections. */
  source: number
  /** It was in a call. Until then, a row of the identity is not from this run. */
  wasSent: boolean
  /** It was in a call without a reply, which may still take effect. */
  hadLostReply: boolean
  /** It is sent again, so that it is looked up before each call. */
  isRetry: boolean
  details: IdentityDetails
}

export const NO_DETAILS: IdentityDetails = {}

export const createIdentity = (): Identity => ({
  state: 'pending',
  source: 0,
  wasSent: false,
  hadLostReply: false,
  isRetry: false,
  details: NO_DETAILS,
})

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
  if (!state.started) return 'preflight'
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
