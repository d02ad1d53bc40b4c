import type { MigrationState } from '../migration/run/report.js'
import type { ExitCode } from './command.js'

/** What the process ends with, by where the run stands. */
export const EXIT_CODES: Readonly<Record<MigrationState, ExitCode>> = {
  complete: 0,
  preflight_failed: 1,
  core_fault: 3,
  to_correct: 4,
  to_reconcile: 5,
  stalled: 6,
  interrupted: 130,
}
