import { pause } from '../../base/deadline.js'
import type { MigrationProgress } from '../../base/decision/migration-event.js'
import type { CoreClient } from '../core/core-client.js'
import type { MigrationSettings } from './migration.js'
import type { JournaledState } from './replay-journal.js'
import type { SourceIndex } from './source-index.js'

/** The shared context of a run's steps. */
export interface MigrationContext {
  readonly core: CoreClient
  readonly settings: MigrationSettings
  readonly journaled: JournaledState
  readonly sourceIndex: SourceIndex
  readonly timing: Timing
  readonly signal: AbortSignal
  /** Consecutive calls without a reply and full effect. A call with a reply, or a batch found staged, resets it. */
  consecutiveLostReplies: number
  /** The row counts at the last look-up of the waiting rows, and the time `at` of it, from `timing.elapsedMs`. */
  lastExamination: { readonly failed: number; readonly processing: number; readonly at: number }
  emit(
    type: MigrationProgress['type'],
    about?: Pick<MigrationProgress, 'rows' | 'users' | 'batch'>,
  ): void
}

/** The clocks and the timer of a run. */
export interface Timing {
  /** Milliseconds since the epoch. */
  readonly now: () => number
  /** Milliseconds on a monotonic clock. */
  readonly elapsedMs: () => number
  /** Rejects with the signal's reason once it aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

export const SYSTEM_TIMING: Timing = {
  now: Date.now,
  elapsedMs: () => performance.now(),
  sleep: pause,
}
