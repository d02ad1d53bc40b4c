import type { CoreClient } from '../core/core-client.js'
import type { Ledger } from './journaled-state.js'
import type { MigrationProgress } from './progress.js'
import type { MigrationSettings } from './settings.js'
import type { Survey } from './source-index.js'
import type { Timing } from './timing.js'

/** What the steps of a run work with. */
export interface Work {
  readonly core: CoreClient
  readonly settings: MigrationSettings
  readonly ledger: Ledger
  readonly survey: Survey
  readonly timing: Timing
  readonly signal: AbortSignal
  /** Calls without reply that a run has resolved one after the other, and none with one. */
  lostInARow: number
  /** The counts of rows when the waiting rows were last looked up. `at`: that time, by `timing.elapsedMs`. */
  examined: { readonly failed: number; readonly processing: number; readonly at: number }
  tell(
    type: MigrationProgress['type'],
    about?: Pick<MigrationProgress, 'rows' | 'users' | 'batch'>,
  ): void
}
