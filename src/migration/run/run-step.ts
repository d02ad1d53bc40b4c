import { patientClient } from '../core/open-core-client.js'
import type { Surveyor } from './build-source-index.js'
import type { Ledger } from './journaled-state.js'
import type { Work } from './migration-context.js'
import type { MigrationReport } from './report.js'
import { reportOf } from './report-of.js'
import type { Ending } from './run-steps.js'
import type { MigrationSettings } from './settings.js'
import type { Timing } from './timing.js'

/** A migration whose journal has been read. */
export interface OpenedMigration {
  readonly settings: MigrationSettings
  readonly ledger: Ledger
  readonly timing: Timing
  readonly tell: Work['tell']
  readonly survey: (signal: AbortSignal) => Promise<Surveyor>
}

export type MigrationStep = (work: Work, surveyor: Surveyor) => Promise<Ending>

/** Runs a step, journals its result and publishes it. */
export async function takeStep(
  opened: OpenedMigration,
  signal: AbortSignal,
  step: MigrationStep,
): Promise<MigrationReport> {
  const { settings, ledger, timing, tell, survey } = opened
  const ending = await endingUnder(signal, async () => {
    const surveyor = await survey(signal)
    const examined = { failed: ledger.state.rows.size, processing: 0, at: timing.elapsedMs() }
    const counters = { lostInARow: 0, examined }
    const core = patientClient(settings.core)
    const work = { core, settings, ledger, timing, tell, signal, ...counters }
    return step({ ...work, survey: surveyor.under(signal) }, surveyor)
  })
  if (ledger.state.begun !== undefined) await writeEnd(ledger, ending)
  tell('ended')
  return reportOf(ledger.state, { ending, now: timing.now() })
}

async function endingUnder(signal: AbortSignal, step: () => Promise<Ending>): Promise<Ending> {
  try {
    return await step()
  } catch (error) {
    if (signal.aborted && error === signal.reason) return { state: 'interrupted', findings: [] }
    throw error
  }
}

async function writeEnd(ledger: Ledger, { findings, ...ending }: Ending): Promise<void> {
  const written = findings.map((finding) => ({ ...finding }))
  await ledger.write({ type: 'ended', ...ending, findings: written })
}
