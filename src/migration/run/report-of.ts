import { adviceFor } from './advice.js'
import type { MigrationReport, RowLeft } from './report.js'
import type { Ending } from './run-steps.js'
import { countsOf, type RunState, sizeOf } from './state/run-state.js'
import { standingOf } from './state/run-status.js'

export function reportOf(state: RunState, { ending, now }: ReportInput): MigrationReport {
  const standing = ending?.state ?? standingOf(state)
  const findings = ending?.findings ?? (state.ended?.findings as Ending['findings'] | undefined)
  return {
    state: standing,
    counts: countsOf(state),
    identities: sizeOf(state),
    startedAt: state.begun?.at ?? now,
    reportedAt: now,
    ...(standing === 'stalled' && { rows: rowsLeft(state) }),
    findings: findings ?? [],
    advice: adviceFor(state, standing, ending ?? state.ended ?? {}),
  }
}

const rowsLeft = ({ stalledRows }: RunState): RowLeft[] =>
  [...stalledRows.values()].map(({ row, externalUserId, status, heldBy }) => ({
    id: row,
    externalUserId,
    status,
    ...(heldBy !== undefined && { heldBy }),
  }))

interface ReportInput {
  /** Of the step that has just ended; else the journal tells it. */
  readonly ending?: Ending
  readonly now: number
}
