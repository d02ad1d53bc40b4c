import { abortWith } from '../../base/deadline.js'
import { announceMigration, type MigrationProgress } from '../../base/decision/migration-event.js'
import { patientClient } from '../core/open-core-client.js'
import { assertPhonePlans } from '../record-validation/phone-number.js'
import { validateUser } from '../record-validation/validate-user.js'
import {
  type Migration,
  type MigrationOptions,
  type MigrationSettings,
  parseSettings,
  type StepOptions,
} from './migration.js'
import { type MigrationContext, SYSTEM_TIMING, type Timing } from './migration-context.js'
import { type JournaledState, replayJournal } from './replay-journal.js'
import {
  createReport,
  type IdentityReport,
  type MigrationReport,
  type StepResult,
} from './report.js'
import {
  check,
  correctAndRun,
  parseCorrectionRequest,
  reverify,
  runSteps,
  runToResult,
  unblock,
} from './run-steps.js'
import {
  assertSameCore,
  createSourceIndex,
  type IndexedRecord,
  type IndexedSettings,
  type SourceIndex,
} from './source-index.js'
import { countsOf, identityAt, mayRestart, reportedState, sizeOf } from './state/run-state.js'

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
  return openReplayed(settings, await replayJournal(settings.journal), timing)
}

/** Opens a migration whose journal has been read. @throws MigrationError `bad_journal` if it is of another core. */
export function openReplayed(
  settings: MigrationSettings,
  journaled: JournaledState,
  timing: Timing = SYSTEM_TIMING,
): Migration {
  if (!mayRestart(journaled.state)) assertSameCore(journaled.state.begun, settings.core)
  const { closing, readIndex, ...reader } = openReader(settings, journaled, timing)
  const runAlone = createStepRunner({ settings, journaled, timing, readIndex }, closing.signal)
  return Object.freeze({
    ...reader,
    check: (stepOptions) => runAlone(check, stepOptions),
    run: (stepOptions) => runAlone((ctx) => runSteps(ctx, 'migrate'), stepOptions),
    async correct(corrections, stepOptions) {
      const request = parseCorrectionRequest(corrections)
      return runAlone((ctx) => correctAndRun(ctx, request), stepOptions)
    },
    reconcile: (stepOptions) => runAlone(reverify, stepOptions),
    unblock: (stepOptions) => runAlone(unblock, stepOptions),
    async close() {
      closing.abort(new Error('the migration is closed'))
      await runAlone.ended()
      await settings.journal.close()
    },
  } satisfies Migration)
}

type MigrationStep = (ctx: MigrationContext) => Promise<StepResult>

interface OpenedMigration extends Pick<MigrationContext, 'settings' | 'journaled' | 'timing'> {
  readonly readIndex: (signal: AbortSignal) => Promise<SourceIndex>
}

/** Returns a function that runs at most one step at a time, because two would stage the same users. */
function createStepRunner(opened: OpenedMigration, closing: AbortSignal) {
  let inProgress: Promise<MigrationReport> | undefined

  async function runAlone(
    step: MigrationStep,
    { signal }: StepOptions = {},
  ): Promise<MigrationReport> {
    closing.throwIfAborted()
    if (inProgress !== undefined) throw new Error('a step of the migration is in progress')
    const controller = new AbortController()
    const signals = signal === undefined ? [closing] : [closing, signal]
    const stopListening = signals.map((each) => abortWith(controller, each))
    inProgress = runStep(opened, controller.signal, step)
    try {
      return await inProgress
    } finally {
      inProgress = undefined
      for (const stop of stopListening) stop()
    }
  }

  return Object.assign(runAlone, {
    /** Resolves once no step is in progress. */
    ended: async (): Promise<void> => void (await inProgress?.catch(() => {})),
  })
}

/** Runs a step, journals its result and publishes it. */
async function runStep(
  { readIndex, ...opened }: OpenedMigration,
  signal: AbortSignal,
  step: MigrationStep,
): Promise<MigrationReport> {
  const { settings, journaled, timing } = opened
  const { state } = journaled
  const emit: MigrationContext['emit'] = (type, about) =>
    announceMigration<MigrationProgress>(settings.onProgress, () => ({
      by: 'migration',
      type,
      counts: countsOf(state),
      identities: sizeOf(state),
      ...about,
    }))
  const result = await runToResult(signal, async () =>
    step({
      ...opened,
      core: patientClient(settings.core),
      sourceIndex: await readIndex(signal),
      signal,
      emit,
      consecutiveLostReplies: 0,
      lastExamination: { failed: state.rows.size, processing: 0, at: timing.elapsedMs() },
    }),
  )
  if (state.begun !== undefined) {
    const findings = result.findings.map((finding) => ({ ...finding }))
    await journaled.write({ type: 'ended', ...result, findings })
  }
  emit('ended')
  return createReport(state, { result, now: timing.now() })
}

/** The functions of a migration that do not call the core. */
export type MigrationReader = Pick<Migration, 'status' | 'identities'>

/** Opens a migration to read its reports. Only `identities` reads the source. */
export function openReader(
  settings: IndexedSettings,
  journaled: JournaledState,
  { now }: Pick<Timing, 'now'> = SYSTEM_TIMING,
): MigrationReader & {
  readonly closing: AbortController
  readonly readIndex: (signal: AbortSignal) => Promise<SourceIndex>
} {
  const { state } = journaled
  const closing = new AbortController()
  let index: Promise<SourceIndex> | undefined
  /** Concurrent calls share one reading, because two would begin the journal twice. */
  const readIndex = (signal: AbortSignal): Promise<SourceIndex> =>
    (index ??= createSourceIndex({ settings, journaled, now }, signal).catch((error: unknown) => {
      index = undefined
      throw error
    }))
  return {
    closing,
    readIndex,
    status: async () => createReport(state, { now: now() }),
    async *identities() {
      const sourceIndex = await readIndex(closing.signal)
      for await (const record of sourceIndex.records(0, closing.signal)) {
        yield reportOn(record, sourceIndex, journaled)
      }
    },
  }
}

function reportOn(
  record: IndexedRecord,
  { lineOf }: SourceIndex,
  { state }: JournaledState,
): IdentityReport {
  const { recordIndex, externalUserId } = record
  const { details, source, state: code } = identityAt(state, recordIndex)
  const corrections = state.corrections[source - 1]
  const report: IdentityReport = {
    externalUserId,
    line: lineOf(recordIndex),
    ...(corrections !== undefined && { corrections: corrections.name }),
    state: reportedState(code),
    ...details,
  }
  if (code !== 'invalid' || details.code !== undefined || details.errors !== undefined)
    return report
  // The journal has no reason, because the validation of the record gives it.
  const validation = validateUser(record.value)
  return validation.ok ? report : { ...report, errors: validation.errors }
}
