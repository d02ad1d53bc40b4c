import type { MigrationCounts } from './report.js'

/**
 * An event of a run, passed to `onProgress` and published on the channel
 * `express-service-auth:migration`. It contains neither secrets nor account data.
 */
export interface MigrationProgress {
  /** Distinguishes it from the decisions of `migrationEndpoint` on the same channel. */
  readonly by: 'migration'
  /** The kind of event. */
  readonly type:
    | 'preflight'
    | 'batch_staged'
    | 'batch_rejected'
    | 'reply_lost'
    | 'reply_resolved'
    | 'waiting'
    | 'row_failed'
    | 'rows_deleted'
    /** The run looked up, or imported directly, users whose rows it deleted. */
    | 'settled'
    | 'corrected'
    | 'reconciling'
    | 'ended'
  /** Number of identities in each state. */
  readonly counts: MigrationCounts
  /** Number of identities in the source. */
  readonly identities: number
  /** Rows that wait at the core. With the type `waiting`. */
  readonly rows?: { readonly new: number; readonly processing: number }
  /** Number of users that the event concerns. */
  readonly users?: number
  /** Number of the batch, from 1. */
  readonly batch?: number
}
