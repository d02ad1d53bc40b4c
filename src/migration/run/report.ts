import type { RowStatus } from '../core/reply.js'
import type { UserFinding } from '../record-validation/user-finding.js'

/** Where a run stands: a closed list. */
export type MigrationState =
  /** Each identity is reconciled, accepted or left out. */
  | 'complete'
  /** Records wait for corrections; see the report's identities. */
  | 'to_correct'
  /** Nothing waits at the core, and not every identity is proved. */
  | 'to_reconcile'
  /** Rows of this run still wait at the core, and nothing has changed there for `stallMinutes`. */
  | 'stalled'
  /** Its signal has aborted; `run` goes on. */
  | 'interrupted'
  /** Something that the source needs is missing, or others' rows are there. */
  | 'preflight_failed'
  /** The core cannot be asked, or answers what it must not. */
  | 'core_fault'

/** Each identity of the source counts once. */
export interface MigrationCounts {
  /** Not a user that the core takes. */
  readonly invalid: number
  /** Not sent yet. */
  readonly pending: number
  /** Sent, or found to have its account already; not yet reconciled. */
  readonly staged: number
  /** Failed at the core; waits for a correction. */
  readonly failed: number
  /** Without an account after the end. */
  readonly missing: number
  /** With an account that differs from the record. */
  readonly differs: number
  /** With an account that is another identity's as well. */
  readonly shared: number
  /** Proved: one account, as the record says. */
  readonly reconciled: number
  /** With a difference that a person has accepted. */
  readonly accepted: number
  /** Left out by a person. */
  readonly left_out: number
}

/** Something that stops a run before anything is staged, or is worth knowing then. */
export interface PreflightFinding {
  /** What was found. */
  readonly code:
    | 'core_too_old'
    | 'in_memory_database'
    | 'tenant_missing'
    | 'role_missing'
    | 'feature_missing'
    | 'provider_missing'
    | 'foreign_rows'
    | 'record_invalid'
    | 'login_taken'
    | 'login_twice'
    | 'warning_not_accepted'
  /** A notice stops nothing. */
  readonly severity: 'fault' | 'notice'
  /** What was found, in a sentence for people. */
  readonly message: string
  /** Of the source, from 1; the first of `records`. */
  readonly line?: number
  /** How many records have it. */
  readonly records?: number
}

/** A row that still waited at the core when the run stalled. */
export interface RowLeft {
  /** The core's id of the row. */
  readonly id: string
  /** The user of the row. */
  readonly externalUserId: string
  /** The row's status at the core. */
  readonly status: RowStatus
  /** The core's id of another account with a login of this user. The core never imports the row. */
  readonly heldBy?: string
}

/** What a step of a migration has come to. */
export interface MigrationReport {
  /** Where the run stands. */
  readonly state: MigrationState
  /** Where the identities stand. */
  readonly counts: MigrationCounts
  /** Records of the source. */
  readonly identities: number
  /** Milliseconds since the epoch: of the journal's first entry, and of this report. */
  readonly startedAt: number
  /** Milliseconds since the epoch: of this report. */
  readonly reportedAt: number
  /** With the state `stalled`: the rows of this run that still wait at the core. */
  readonly rows?: readonly RowLeft[]
  /** What the preflight has found. */
  readonly findings: readonly PreflightFinding[]
  /** What a person does next, a sentence each. */
  readonly advice: readonly string[]
}

/** Where one identity stands: a closed list. */
export type IdentityState = keyof MigrationCounts

/** What a report says of one identity. */
export interface IdentityReport {
  /** Whom it is about. */
  readonly externalUserId: string
  /** Of the source, or of the corrections that replaced it. */
  readonly line: number
  /** The name of the corrections that replaced it. */
  readonly corrections?: string
  /** Where it stands. */
  readonly state: IdentityState
  /** The account's id in the core. */
  readonly coreUserId?: string
  /** Of the row that failed. */
  readonly rowId?: string
  /** The core's code, such as `E003`, or one of this package, such as `chunk_failed` or `login_taken`. */
  readonly code?: string
  /** Why it failed, in the core's words. */
  readonly text?: string
  /** The account that holds a login of this identity. */
  readonly heldBy?: string
  /** Why it is invalid. */
  readonly errors?: readonly UserFinding[]
  /** In what the account differs: paths of the record, without values. */
  readonly differences?: readonly string[]
  /** Why a person accepted it, or left it out. */
  readonly reason?: string
}
