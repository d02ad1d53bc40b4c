import { channel } from 'node:diagnostics_channel'
import { abortWith } from '../../base/on-abort.js'
import { patientClient } from '../core/open-core-client.js'
import { identityReports } from './identities.js'
import { type Ledger, openLedger } from './journaled-state.js'
import type { Migration, MigrationOptions, MigrationProgress, StepOptions } from './migration.js'
import type { Work } from './migration-context.js'
import { assertSameCore } from './read-source.js'
import type { MigrationReport } from './report.js'
import { reportOf } from './report-of.js'
import {
  check,
  correctAndWalk,
  type Ending,
  lookAgain,
  parseCorrectionRequest,
  unblock,
  walk,
} from './run-steps.js'
import { type MigrationSettings, parseSettings } from './settings.js'
import { type Surveyor, surveyOnce, takeSurvey } from './source-index.js'
import { countsOf, mayBeginAgain, sizeOf } from './state/run-state.js'
import { SYSTEM_TIMING, type Timing } from './timing.js'

/**
 * Opens a migration of `source` into `core`, which continues where `journal` ends. Opening reads only
 * the journal and sends no request. Steps run one at a time.
 *
 * A step rejects with a `MigrationError` if a person must first fix the source, the corrections or the
 * journal. Problems at the core are in its report.
 *
 * @throws TypeError if an option is unknown, of the wrong type or out of range.
 * @throws MigrationError `bad_journal`.
 */
export const openMigration = async (options: MigrationOptions): Promise<Migration> =>
  openMigrationWith(options, SYSTEM_TIMING)

/** `openMigration` with injectable clocks. */
export async function openMigrationWith(
  options: MigrationOptions,
  timing: Timing,
): Promise<Migration> {
  const settings = parseSettings(options)
  const ledger = await openLedger(settings.journal)
  if (!mayBeginAgain(ledger.state)) assertSameCore(ledger.state.begun, settings.core)
  const tell = progressTeller(ledger, settings.onProgress)
  const survey = surveyOnce((signal) =>
    takeSurvey({ settings, ledger, timing, signal }, settings.corrections),
  )
  return migrationOf({ settings, ledger, timing, tell, survey })
}

function migrationOf(opened: OpenedMigration): Migration {
  const { settings, ledger, timing, survey } = opened
  const steps = oneAtATime()
  const closing = new AbortController()

  async function take({ signal }: StepOptions, step: MigrationStep): Promise<MigrationReport> {
    closing.signal.throwIfAborted()
    const controller = new AbortController()
    const signals = signal === undefined ? [closing.signal] : [closing.signal, signal]
    const stopListening = signals.map((each) => abortWith(controller, each))
    try {
      return await steps.take(() => takeStep(opened, controller.signal, step))
    } finally {
      for (const stop of stopListening) stop()
    }
  }

  return Object.freeze({
    check: (options = {}) => take(options, check),
    run: (options = {}) => take(options, (work) => walk(work, 'finish')),
    async correct(corrections, options = {}) {
      const request = parseCorrectionRequest(corrections)
      return take(options, (work, surveyor) => correctAndWalk(work, surveyor, request))
    },
    reconcile: (options = {}) => take(options, lookAgain),
    unblock: (options = {}) => take(options, unblock),
    status: async () => reportOf(ledger.state, { now: timing.now() }),
    async *identities() {
      const found = await survey(closing.signal)
      yield* identityReports(ledger, found.under(closing.signal))
    },
    async close() {
      closing.abort(new Error('the migration is closed'))
      await steps.ended()
      await settings.journal.close()
    },
  } satisfies Migration)
}

/** Runs at most one step at a time. */
interface OneAtATime {
  /** @throws Error while another step runs, because both would stage the same users. */
  take<Result>(step: () => Promise<Result>): Promise<Result>
  /** Resolves once no step is running. */
  ended(): Promise<void>
}

function oneAtATime(): OneAtATime {
  let underWay: Promise<unknown> | undefined
  return {
    async take(step) {
      if (underWay !== undefined) throw new Error('a step of the migration is under way')
      const result = step().finally(() => {
        underWay = undefined
      })
      underWay = result
      return result
    },
    async ended() {
      await underWay?.catch(ignore)
    },
  }
}

function ignore(): void {}

const migrations = channel('express-service-auth:migration')

/** Returns a function that publishes progress events. An error of the observer is ignored. */
function progressTeller(
  { state }: Ledger,
  observe: ((event: MigrationProgress) => unknown) | undefined,
): Work['tell'] {
  return (type, about) => {
    if (observe === undefined && !migrations.hasSubscribers) return
    const event: MigrationProgress = {
      by: 'migration',
      type,
      counts: countsOf(state),
      identities: sizeOf(state),
      ...about,
    }
    tellObserver(observe, event)
    if (migrations.hasSubscribers) migrations.publish(event)
  }
}

function tellObserver(
  observe: ((event: MigrationProgress) => unknown) | undefined,
  event: MigrationProgress,
): void {
  try {
    const returned = observe?.(event)
    if (typeof returned === 'object') Promise.resolve(returned).catch(ignore)
  } catch {
    // An error of the observer does not affect the run.
  }
}

/** A migration whose journal has been read. */
interface OpenedMigration {
  readonly settings: MigrationSettings
  readonly ledger: Ledger
  readonly timing: Timing
  readonly tell: Work['tell']
  readonly survey: (signal: AbortSignal) => Promise<Surveyor>
}

type MigrationStep = (work: Work, surveyor: Surveyor) => Promise<Ending>

/** Runs a step, journals its result and publishes it. */
async function takeStep(
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
