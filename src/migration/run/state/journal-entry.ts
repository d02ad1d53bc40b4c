import type { CoreErrorCode } from '../../core/core-error.js'

/** Identifies a source: its path or name, and the digest of its content. */
export interface Origin {
  readonly name: string
  readonly file: boolean
  readonly digest: string
}

interface Begun {
  readonly type: 'begun'
  /** Milliseconds since the epoch. */
  readonly at: number
  readonly identities: number
  readonly source: Origin
  readonly core?: string
}

/** Valid records that are not staged, because an account (`taken`) or an earlier record (`twice`) has their login. */
interface LoginConflicts {
  readonly taken: readonly (readonly [recordIndex: number, heldBy: string])[]
  readonly twice: readonly (readonly [recordIndex: number, text: string])[]
}

/** The results of a preflight, which replace those of an earlier one. */
interface Preflight extends LoginConflicts {
  readonly type: 'preflight'
  /** The preflight has passed, so staging may begin. */
  readonly started: boolean
  readonly invalid: readonly number[]
  readonly hasAccount: readonly number[]
  readonly foreignRows: readonly string[]
}

/** A call that changes the core. It is journaled before it is sent. */
interface Sent {
  readonly type: 'sent'
  readonly call:
    | { readonly kind: 'stage'; readonly batch: number; readonly records: readonly number[] }
    | { readonly kind: 'delete'; readonly rows: readonly string[] }
}

/** The result of the last call that was sent. */
interface Settled {
  readonly type: 'settled'
  readonly result: /** `by`: without a reply, each user has a row or an account; `accounts` if none has a row. */
    | { readonly outcome: 'staged'; readonly by: 'reply' | 'row' | 'accounts' }
    | { readonly outcome: 'rejected'; readonly users: readonly RejectedRecord[] }
    /** The call staged nobody. Some users have a row or an account from elsewhere. */
    | { readonly outcome: 'absent'; readonly existing: readonly number[] }
    | { readonly outcome: 'deleted'; readonly rows: readonly string[] }
    | {
        readonly outcome: 'unaccounted'
        readonly deleted: readonly string[]
        readonly open: readonly string[]
      }
    | { readonly outcome: 'refused'; readonly code: string }
}

interface RejectedRecord {
  readonly record: number
  readonly line: number
  readonly errors: readonly string[]
  /** What the core lacks, if all errors name that: the record can be staged again with this code. */
  readonly code?: string
}

/**
 * A row of this run.
 *
 * - `failed`: the core could not import it.
 * - `duplicate`: its identity already has its account, or has been decided on since.
 * - `stalled`: it still waited at the core when the run stalled.
 * - `unresolved`: it is deleted next, and its identity is looked up after the deletion.
 */
interface Row {
  readonly type: 'row'
  readonly row: string
  readonly record: number
  readonly line: number
  readonly externalUserId: string
  readonly as: 'failed' | 'duplicate' | 'stalled' | 'unresolved'
  readonly status: 'NEW' | 'PROCESSING' | 'FAILED'
  readonly code?: string
  readonly text?: string
  readonly heldBy?: string
}

/** What is left to do once nothing is left to send. */
interface Rest {
  readonly type: 'rest'
  readonly phase: 'wait' | 'collect' | 'reconcile' | 'done'
  /** A person requested to look up each identity again. With the phase `wait`. */
  readonly reverify?: boolean
}

/** An identity that no longer has a row and cannot get an account with its record. */
export interface RefusedRecord {
  readonly record: number
  readonly line: number
  readonly code?: string
  readonly text: string
  readonly heldBy?: string
}

/** Results of look-ups. The first four lists are results of the step `reconcile`. */
interface LookedUp {
  readonly type: 'looked_up'
  readonly same: readonly (readonly [recordIndex: number, coreUserId: string])[]
  readonly differs: readonly (readonly [
    recordIndex: number,
    coreUserId: string,
    paths: readonly string[],
  ])[]
  readonly shared: readonly (readonly [recordIndex: number, coreUserId: string])[]
  readonly missing: readonly (readonly [recordIndex: number, heldBy: string | null])[]
  readonly hasAccount: readonly number[]
  readonly hasRow: readonly number[]
  /** Identities that are imported directly. */
  readonly toImport: readonly number[]
  readonly refused: readonly RefusedRecord[]
}

/** A record that a person decided on, with the line of the correction. */
type Decision = readonly [recordIndex: number, line: number, reason: string]

interface Corrected {
  readonly type: 'corrected'
  readonly source: Origin
  readonly replaced: (readonly [recordIndex: number, line: number])[]
  readonly leftOut: Decision[]
  readonly accepted: Decision[]
}

/** Records that failed or were held back with one of these codes, and are staged again. */
interface Retry extends LoginConflicts {
  readonly type: 'retry'
  readonly codes: readonly string[]
  readonly records: readonly number[]
}

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

/** A result of the preflight that stops the run before staging, or that is worth knowing. */
export interface PreflightFinding {
  /** The kind of finding. */
  readonly code:
    | 'core_too_old'
    | 'in_memory_database'
    | 'tenant_missing'
    | 'role_missing'
    | 'feature_missing'
    | 'foreign_rows'
    | 'record_invalid'
    | 'login_taken'
    | 'login_twice'
    | 'warning_not_accepted'
  /** A `fault` stops the run, a `notice` does not. */
  readonly severity: 'fault' | 'notice'
  /** A sentence for people. */
  readonly message: string
  /** Line of the source, from 1: the first of the `records`. */
  readonly line?: number
  /** Number of records, or of rows, with this finding. */
  readonly records?: number
}

/** The result of a step of a `Migration`, which may run several steps of a run. */
export interface StepResult {
  readonly state: MigrationState
  readonly findings: readonly PreflightFinding[]
  /** The message of the core error that ended the run. */
  readonly fault?: string
  readonly faultCode?: CoreErrorCode
}

interface Ended extends StepResult {
  readonly type: 'ended'
}

export type Entry =
  | Begun
  | Preflight
  | Sent
  | Settled
  | Row
  | Rest
  | LookedUp
  | Corrected
  | Retry
  | Ended

export type EntryOf<Type extends Entry['type']> = Extract<Entry, { type: Type }>
export type SentCall = Sent['call']
export type CallResult = Settled['result']
export type ResultOf<Outcome extends CallResult['outcome']> = Extract<
  CallResult,
  { outcome: Outcome }
>

/** What one look-up found. */
export type Finding = Partial<Omit<LookedUp, 'type'>>

export const lookedUpEntry = (...findings: readonly Finding[]): LookedUp => ({
  type: 'looked_up',
  same: findings.flatMap(({ same = [] }) => same),
  differs: findings.flatMap(({ differs = [] }) => differs),
  shared: findings.flatMap(({ shared = [] }) => shared),
  missing: findings.flatMap(({ missing = [] }) => missing),
  hasAccount: findings.flatMap(({ hasAccount = [] }) => hasAccount),
  hasRow: findings.flatMap(({ hasRow = [] }) => hasRow),
  toImport: findings.flatMap(({ toImport = [] }) => toImport),
  refused: findings.flatMap(({ refused = [] }) => refused),
})
