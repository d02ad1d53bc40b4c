import type { CoreClient } from '../core/core-client.js'
import type { Ledger } from './journaled-state.js'
import type { MigrationProgress } from './migration.js'
import type { MigrationSettings } from './settings.js'
import type { Survey } from './source-index.js'
import type { Timing } from './timing.js'

/** The shared context of a run's steps. */
export interface Work {
  readonly core: CoreClient
  readonly settings: MigrationSettings
  readonly ledger: Ledger
  readonly survey: Survey
  readonly timing: Timing
  readonly signal: AbortSignal
  /** Number of consecutive calls that got no reply. A call with a reply resets it. */
  lostInARow: number
  /** The row counts at the last look-up of the waiting rows, and its time `at`, from `timing.elapsedMs`. */
  examined: { readonly failed: number; readonly processing: number; readonly at: number }
  tell(
    type: MigrationProgress['type'],
    about?: Pick<MigrationProgress, 'rows' | 'users' | 'batch'>,
  ): void
}
