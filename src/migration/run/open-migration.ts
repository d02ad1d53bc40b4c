import { announceMigration, type MigrationProgress } from '../../base/decision/migration-event.js'
import { abortWith } from '../../base/on-abort.js'
import { patientClient } from '../core/open-core-client.js'
import { assertPhonePlans } from '../record-validation/phone-number.js'
import {
  type Migration,
  type MigrationOptions,
  type MigrationSettings,
  parseSettings,
  type StepOptions,
} from './migration.js'
import { type MigrationContext, SYSTEM_TIMING, type Timing } from './migration-context.js'
import { type JournaledState, replayJournal } from './replay-journal.js'
import type { MigrationReport } from './report.js'
import { createReport, identityReports } from './report-of.js'
import {
  check,
  correctAndRun,
  parseCorrectionRequest,
  reverify,
  runSteps,
  runToResult,
  type StepResult,
  unblock,
} from './run-steps.js'
import { assertSameCore, createSourceIndex, type SourceIndex } from './source-index.js'
import { countsOf, mayRestart, sizeOf } from './state/run-state.js'

/**
 * Opens a migration of `source` into `core`, which continues where `journal` ends. Opening reads only
 * the journal and sends no request. Steps run one at a time.
 *
 * A step rejects with a `MigrationError` if a person must first fix the source, the corrections or the
 * journal. Problems at the core are in its report.
 *
 * @throws TypeError if an option is unknown, of the wrong type or out of range.
 * @throws MigrationError `bad_journal`.
 * @throws Error if the installed google-libphonenumber has other numbering plans than the core.
 *
 * @example
 * ```ts
 * import { coreClient, fileJournal, openMigration } from 'express-service-auth/migration'
 *
 * const core = coreClient({
 *   baseUrl: process.env['CORE_URL'] ?? 'http://127.0.0.1:3567',
 *   apiKey: process.env['CORE_API_KEY'] ?? 'local-development-key',
 * })
 * const journal = await fileJournal('journal')
 * const migration = await openMigration({ core, journal, source: { file: 'users.ndjson' } })
 * const { state, findings } = await migration.check()
 * console.log(state, findings.length)
 * await journal.close()
 * ```
 */
export const openMigration = async (options: MigrationOptions): Promise<Migration> =>
  openMigrationWith(options, SYSTEM_TIMING)

/** `openMigration` with injectable clocks. */
export async function openMigrationWith(
  options: MigrationOptions,
  timing: Timing,
): Promise<Migration> {
  assertPhonePlans()
  const settings = parseSettings(options)
  const journaled = await replayJournal(settings.journal)
  if (!mayRestart(journaled.state)) assertSameCore(journaled.state.begun, settings.core)
  const emit = createEmitter(journaled, settings.onProgress)
  const readIndex = once((signal) =>
    createSourceIndex({ settings, journaled, now: timing.now }, signal),
  )
  return migrationOf({ settings, journaled, timing, emit, readIndex })
}

/** Reads the index on the first call. Concurrent calls wait for it, because two reads would begin the journal twice. */
function once(
  read: (signal: AbortSignal) => Promise<SourceIndex>,
): (signal: AbortSignal) => Promise<SourceIndex> {
  let index: SourceIndex | undefined
  let lastRead: Promise<unknown> = Promise.resolve()
  return (signal) => {
    const reading = lastRead.then(async () => {
      index ??= await read(signal)
      return index
    })
    lastRead = reading.catch(() => {})
    return reading
  }
}

function migrationOf(opened: OpenedMigration): Migration {
  const { settings, journaled, timing, readIndex } = opened
  const closing = new AbortController()
  let inProgress: Promise<MigrationReport> | undefined

  /** Runs at most one step at a time, because two would stage the same users. */
  async function runAlone({ signal }: StepOptions, step: MigrationStep): Promise<MigrationReport> {
    closing.signal.throwIfAborted()
    if (inProgress !== undefined) throw new Error('a step of the migration is in progress')
    const controller = new AbortController()
    const signals = signal === undefined ? [closing.signal] : [closing.signal, signal]
    const stopListening = signals.map((each) => abortWith(controller, each))
    inProgress = runStep(opened, controller.signal, step)
    try {
      return await inProgress
    } finally {
      inProgress = undefined
      for (const stop of stopListening) stop()
    }
  }

  return Object.freeze({
    check: (options = {}) => runAlone(options, check),
    run: (options = {}) => runAlone(options, (ctx) => runSteps(ctx, 'migrate')),
    async correct(corrections, options = {}) {
      const request = parseCorrectionRequest(corrections)
      return runAlone(options, (ctx) => correctAndRun(ctx, request))
    },
    reconcile: (options = {}) => runAlone(options, reverify),
    unblock: (options = {}) => runAlone(options, unblock),
    status: async () => createReport(journaled.state, { now: timing.now() }),
    async *identities() {
      const index = await readIndex(closing.signal)
      yield* identityReports(journaled, index, closing.signal)
    },
    async close() {
      closing.abort(new Error('the migration is closed'))
      await inProgress?.catch(() => {})
      await settings.journal.close()
    },
  } satisfies Migration)
}

/** Returns a function that publishes progress events. An error of the observer is ignored. */
const createEmitter =
  ({ state }: JournaledState, observe: MigrationSettings['onProgress']): MigrationContext['emit'] =>
  (type, about) =>
    announceMigration<MigrationProgress>(observe, () => ({
      by: 'migration',
      type,
      counts: countsOf(state),
      identities: sizeOf(state),
      ...about,
    }))

/** A migration whose journal has been read. */
interface OpenedMigration {
  readonly settings: MigrationSettings
  readonly journaled: JournaledState
  readonly timing: Timing
  readonly emit: MigrationContext['emit']
  readonly readIndex: (signal: AbortSignal) => Promise<SourceIndex>
}

type MigrationStep = (ctx: MigrationContext) => Promise<StepResult>

/** Runs a step, journals its result and publishes it. */
async function runStep(
  { readIndex, ...opened }: OpenedMigration,
  signal: AbortSignal,
  step: MigrationStep,
): Promise<MigrationReport> {
  const { settings, journaled, timing, emit } = opened
  const result = await runToResult(signal, async () =>
    step({
      ...opened,
      core: patientClient(settings.core),
      sourceIndex: await readIndex(signal),
      signal,
      consecutiveLostReplies: 0,
      lastExamination: {
        failed: journaled.state.rows.size,
        processing: 0,
        at: timing.elapsedMs(),
      },
    }),
  )
  if (journaled.state.begun !== undefined) {
    const findings = result.findings.map((finding) => ({ ...finding }))
    await journaled.write({ type: 'ended', ...result, findings })
  }
  emit('ended')
  return createReport(journaled.state, { result, now: timing.now() })
}

export type ReadMigrationOptions = Pick<
  MigrationSettings,
  'journal' | 'source' | 'corrections' | 'batchBytes'
>

/** The functions of a migration that do not call the core. */
export type MigrationReader = Pick<Migration, 'status' | 'identities' | 'close'>

/**
 * Opens a migration to read its reports. Only `identities` reads the source.
 *
 * @throws MigrationError `bad_journal`.
 */
export async function readMigration(settings: ReadMigrationOptions): Promise<MigrationReader> {
  const { now } = SYSTEM_TIMING
  const journaled = await replayJournal(settings.journal)
  const closing = new AbortController()
  return {
    status: async () => createReport(journaled.state, { now: now() }),
    async *identities() {
      const index = await createSourceIndex({ settings, journaled, now }, closing.signal)
      yield* identityReports(journaled, index, closing.signal)
    },
    async close() {
      closing.abort(new Error('the migration is closed'))
      await settings.journal.close()
    },
  }
}
