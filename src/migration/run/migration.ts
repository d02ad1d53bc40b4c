import type { CoreClient } from '../core/core-client.js'
import type { Journal } from '../journal/journal.js'
import type { UserWarningCode } from '../record-validation/user-finding.js'
import type { Source } from '../source/source.js'
import type { MigrationProgress } from './progress.js'
import type { IdentityReport, MigrationReport } from './report.js'

/** What `openMigration` takes. */
export interface MigrationOptions {
  /** The core that is asked, such as a `coreClient`. */
  readonly core: CoreClient
  /** The records to bring over. */
  readonly source: Source
  /** The record of what is done, such as a `fileJournal`. */
  readonly journal: Journal
  /** Called with each step. What it throws or rejects with has no effect. */
  readonly onProgress?: (event: MigrationProgress) => unknown
  /** Users in a call, 1 to 10,000. Default 2000. */
  readonly batchUsers?: number
  /** Bytes of a call, and of the largest record, 65,536 to 67,108,864. Default 1,000,000. */
  readonly batchBytes?: number
  /** Seconds after which a call without reply counts as ended at the core, 0 to 600. Default 60. */
  readonly settleSeconds?: number
  /** Seconds between two counts, 1 to 3600. Default 15. */
  readonly pollSeconds?: number
  /** Minutes without a change that count as a stall, 1 to 1440. Default 30. */
  readonly stallMinutes?: number
  /** Look-ups at once, 1 to 64. Default 8. */
  readonly lookUps?: number
  /** Any other warning stops before staging. Default none. */
  readonly acceptWarnings?: readonly UserWarningCode[]
  /** Start beside rows of others, which are never touched. Default false. */
  readonly allowForeignRows?: boolean
  /** Sources of the corrections made so far, in their order. Default none. */
  readonly corrections?: readonly Source[]
}

/** What each step of a migration takes. */
export interface StepOptions {
  /** Ends the step early: its report says `interrupted`, and nothing is lost. */
  readonly signal?: AbortSignal
}

/** A migration of a source into the core. One step at a time. */
export interface Migration {
  /** Preflight alone: nothing is staged. */
  check(options?: StepOptions): Promise<MigrationReport>
  /** From wherever the journal ends to the next state that needs a person. */
  run(options?: StepOptions): Promise<MigrationReport>
  /** Applies corrections, or stages records again that failed or were held back with a code; then as `run`. */
  correct(
    corrections: Source | { readonly again: readonly string[] },
    options?: StepOptions,
  ): Promise<MigrationReport>
  /** Looks each identity up again. After the first `run`. */
  reconcile(options?: StepOptions): Promise<MigrationReport>
  /**
   * After a run that stalled: deletes the rows that its report lists, and looks each of their users up.
   * The user has an account, or fails because another account has the login, or is imported by the next
   * `run`. Rejects with `bad_journal` when no run has stalled.
   */
  unblock(options?: StepOptions): Promise<MigrationReport>
  /** From the journal alone. */
  status(): Promise<MigrationReport>
  /** Each identity of the source, in its order. */
  identities(): AsyncIterable<IdentityReport>
  /** Closes the journal. Another run may open it then. */
  close(): Promise<void>
}
