import { notify, openChannel } from '../../base/decision/observers.js'
import { abortWith } from '../../base/on-abort.js'
import { patientClient } from '../core/open-core-client.js'
import { identityReports } from './identities.js'
import { type JournaledState, openJournaledState } from './journaled-state.js'
import type { Migration, MigrationOptions, MigrationProgress, StepOptions } from './migration.js'
import type { MigrationContext } from './migration-context.js'
import { assertSameCore } from './read-source.js'
import type { MigrationReport } from './report.js'
import { reportOf } from './report-of.js'
import {
  check,
  correctAndRun,
  parseCorrectionRequest,
  reverify,
  runSteps,
  type StepResult,
  unblock,
} from './run-steps.js'
import { type MigrationSettings, parseSettings } from './settings.js'
import { createOnce, createSourceIndexBuilder, type SourceIndexBuilder } from './source-index.js'
import { countsOf, mayRestart, sizeOf } from './state/run-state.js'
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
  const journaled = await openJournaledState(settings.journal)
  if (!mayRestart(journaled.state)) assertSameCore(journaled.state.begun, settings.core)
  const emit = createEmitter(journaled, settings.onProgress)
  const indexBuilder = createOnce((signal) =>
    createSourceIndexBuilder({ settings, journaled, timing, signal }, settings.corrections),
  )
  return migrationOf({ settings, journaled, timing, emit, indexBuilder })
}

function migrationOf(opened: OpenedMigration): Migration {
  const { settings, journaled, timing, indexBuilder } = opened
  const steps = oneAtATime()
  const closing = new AbortController()

  async function take({ signal }: StepOptions, step: MigrationStep): Promise<MigrationReport> {
    closing.signal.throwIfAborted()
    const controller = new AbortController()
    const signals = signal === undefined ? [closing.signal] : [closing.signal, signal]
    const stopListening = signals.map((each) => abortWith(controller, each))
    try {
      return await steps.take(() => runStep(opened, controller.signal, step))
    } finally {
      for (const stop of stopListening) stop()
    }
  }

  return Object.freeze({
    check: (options = {}) => take(options, check),
    run: (options = {}) => take(options, (ctx) => runSteps(ctx, 'migrate')),
    async correct(corrections, options = {}) {
      const request = parseCorrectionRequest(corrections)
      return take(options, (ctx, builder) => correctAndRun(ctx, builder, request))
    },
    reconcile: (options = {}) => take(options, reverify),
    unblock: (options = {}) => take(options, unblock),
    status: async () => reportOf(journaled.state, { now: timing.now() }),
    async *identities() {
      const builder = await indexBuilder(closing.signal)
      yield* identityReports(journaled, builder.withSignal(closing.signal))
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
      await underWay?.catch(() => {})
    },
  }
}

const migrations = openChannel('migration')

/** Returns a function that publishes progress events. An error of the observer is ignored. */
function createEmitter(
  { state }: JournaledState,
  observe: ((event: MigrationProgress) => unknown) | undefined,
): MigrationContext['emit'] {
  return (type, about) => {
    if (observe === undefined && !migrations.hasSubscribers) return
    const event: MigrationProgress = {
      by: 'migration',
      type,
      counts: countsOf(state),
      identities: sizeOf(state),
      ...about,
    }
    if (observe !== undefined) notify(observe, event)
    if (migrations.hasSubscribers) migrations.publish(event)
  }
}

/** A migration whose journal has been read. */
interface OpenedMigration {
  readonly settings: MigrationSettings
  readonly journaled: JournaledState
  readonly timing: Timing
  readonly emit: MigrationContext['emit']
  readonly indexBuilder: (signal: AbortSignal) => Promise<SourceIndexBuilder>
}

type MigrationStep = (ctx: MigrationContext, builder: SourceIndexBuilder) => Promise<StepResult>

/** Runs a step, journals its result and publishes it. */
async function runStep(
  opened: OpenedMigration,
  signal: AbortSignal,
  step: MigrationStep,
): Promise<MigrationReport> {
  const { settings, journaled, timing, emit, indexBuilder } = opened
  const result = await resultUnder(signal, async () => {
    const builder = await indexBuilder(signal)
    const lastExamination = {
      failed: journaled.state.rows.size,
      processing: 0,
      at: timing.elapsedMs(),
    }
    const counters = { consecutiveLostReplies: 0, lastExamination }
    const core = patientClient(settings.core)
    const ctx = { core, settings, journaled, timing, emit, signal, ...counters }
    return step({ ...ctx, sourceIndex: builder.withSignal(signal) }, builder)
  })
  if (journaled.state.begun !== undefined) await writeResult(journaled, result)
  emit('ended')
  return reportOf(journaled.state, { result, now: timing.now() })
}

async function resultUnder(
  signal: AbortSignal,
  step: () => Promise<StepResult>,
): Promise<StepResult> {
  try {
    return await step()
  } catch (error) {
    if (signal.aborted && error === signal.reason) return { state: 'interrupted', findings: [] }
    throw error
  }
}

async function writeResult(
  journaled: JournaledState,
  { findings, ...result }: StepResult,
): Promise<void> {
  const written = findings.map((finding) => ({ ...finding }))
  await journaled.write({ type: 'ended', ...result, findings: written })
}
