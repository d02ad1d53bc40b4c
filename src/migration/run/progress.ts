import type { MigrationCounts } from './report.js'

/**
 * A step of a run, on `onProgress` and the channel `express-service-auth:migration`. Holds neither
 * secrets nor account data.
 */
export interface MigrationProgress {
  /** Tells it from the decisions of `migrationEndpoint` on the same channel. */
  readonly by: 'migration'
  /** What has happened. */
  readonly type:
    | 'preflight'
    | 'batch_staged'
    | 'batch_rejected'
    | 'reply_lost'
    | 'reply_resolved'
    | 'waiting'
    | 'row_failed'
    | 'rows_deleted'
    /** Users whose rows were deleted were looked up or imported directly. */
    | 'settled'
    | 'corrected'
    | 'reconciling'
    | 'ended'
  /** Where the identities stand. */
  readonly counts: MigrationCounts
  /** Identities of the source. */
  readonly identities: number
  /** Rows at the core, while waiting. */
  readonly rows?: { readonly new: number; readonly processing: number }
  /** Users that this step was about. */
  readonly users?: number
  /** Of a batch, from 1. */
  readonly batch?: number
}
