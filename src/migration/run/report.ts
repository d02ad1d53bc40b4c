import type { MigrationCounts } from '../../base/decision/migration-event.js'
import type { RowStatus } from '../core/core-client.js'
import type { UserFinding } from '../record-validation/user-finding.js'

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
    | 'provider_missing'
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

/** A row that still waited at the core when the run stalled. */
export interface RowLeft {
  /** The core's id of the row. */
  readonly id: string
  /** The external id of the row's user. */
  readonly externalUserId: string
  /** The status of the row at the core. */
  readonly status: RowStatus
  /** The core's id of another account that has a login of this user. The core never imports such a row. */
  readonly heldBy?: string
}

/** The result of a step of a migration. */
export interface MigrationReport {
  /** The state of the run. */
  readonly state: MigrationState
  /** Number of identities in each state. */
  readonly counts: MigrationCounts
  /** Number of records in the source. */
  readonly identities: number
  /** Time of the journal's first entry, in milliseconds since the epoch. */
  readonly startedAt: number
  /** Time of this report, in milliseconds since the epoch. */
  readonly reportedAt: number
  /** The rows of this run that still wait at the core. With the state `stalled`. */
  readonly rows?: readonly RowLeft[]
  /** The results of the preflight. */
  readonly findings: readonly PreflightFinding[]
  /** The next steps for a person, one sentence each. */
  readonly advice: readonly string[]
}

/** The state of one identity. This list is closed. */
export type IdentityState = keyof MigrationCounts

/** The report of one identity. */
export interface IdentityReport {
  /** The external id of its record. */
  readonly externalUserId: string
  /** Line of the record in the source, or in the corrections that replaced it. */
  readonly line: number
  /** The name of the corrections that replaced the record. */
  readonly corrections?: string
  /** The state of the identity. */
  readonly state: IdentityState
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
