import { abortWith } from '../../base/deadline.js'
import { announceMigration, type MigrationProgress } from '../../base/decision/migration-event.js'
import { CoreError } from '../core/core-error.js'
import { patientClient } from '../core/open-core-client.js'
import { assertPhonePlans } from '../record-validation/normalise.js'
import { validateUser } from '../record-validation/validate-user.js'
import { openCorrections } from '../source/corrections.js'
import type { Source } from '../source/source.js'
import {
  type Migration,
  type MigrationOptions,
  type MigrationSettings,
  parseCorrectionRequest,
  parseSettings,
  type StepOptions,
} from './migration.js'
import { MigrationError } from './migration-error.js'
import {
  assertSameCore,
  createSourceIndex,
  type IndexedRecord,
  type IndexedSettings,
  type MigrationContext,
  originOf,
  type SourceIndex,
  SYSTEM_TIMING,
  type Timing,
} from './records.js'
import { createReport, type IdentityReport, type MigrationReport } from './report.js'
import type { PreflightFinding, StepResult } from './state/journal-entry.js'
import { type JournaledState, replayJournal } from './state/replay-journal.js'
import {
  countOf,
  countsOf,
  detailsOf,
  finalState,
  type Goal,
  identityCode,
  mayRestart,
  nextStep,
  type RunStep,
  reportedState,
  sizeOf,
  sourceOf,
} from './state/run-state.js'
import { decideDeletion, deleteRows, resolveLostReply } from './steps/calls-and-lost-replies.js'
import { checkCorrections, retryFailed } from './steps/correct.js'
import { preflight } from './steps/preflight.js'
import { reconcile } from './steps/reconcile.js'
import { collect, importDirectly, resolveIdentities } from './steps/resolve-identities.js'
import { stage } from './steps/stage.js'
import { waitForImport } from './steps/wait-for-import.js'

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
  let inProgress: Promise<MigrationReport> | undefined

  /** Runs one step at a time, because two would stage the same users. */
  async function runAlone(
    step: MigrationStep,
    { signal }: StepOptions = {},
  ): Promise<MigrationReport> {
    closing.signal.throwIfAborted()
    if (inProgress !== undefined) throw new Error('a step of the migration is in progress')
    const controller = new AbortController()
    const signals = signal === undefined ? [closing.signal] : [closing.signal, signal]
    const stopListening = signals.map((each) => abortWith(controller, each))
    inProgress = runStep({ settings, journaled, timing, readIndex }, controller.signal, step)
    try {
      return await inProgress
    } finally {
      inProgress = undefined
      for (const stop of stopListening) stop()
    }
  }

  return Object.freeze({
    ...reader,
    check: (stepOptions) => runAlone(check, stepOptions),
    run: (stepOptions) => runAlone((ctx) => runSteps(ctx, 'migrate'), stepOptions),
    async correct(corrections, stepOptions) {
      const request = parseCorrectionRequest(corrections)
      return runAlone(async (ctx) => {
        if ('again' in request) await retryFailed(ctx, request.again)
        else await applyCorrections(ctx, request)
        return runSteps(ctx, 'migrate')
      }, stepOptions)
    },
    reconcile: (stepOptions) => runAlone(reverify, stepOptions),
    unblock: (stepOptions) => runAlone(unblock, stepOptions),
    async close() {
      closing.abort(new Error('the migration is closed'))
      await inProgress?.catch(() => {})
      await settings.journal.close()
    },
  } satisfies Migration)
}

/** Opens a migration to read its reports. Only `identities` reads the source. */
export function openReader(
  settings: IndexedSettings,
  journaled: JournaledState,
  { now }: Pick<Timing, 'now'> = SYSTEM_TIMING,
) {
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
  const details = detailsOf(state, recordIndex)
  const code = identityCode(state, recordIndex)
  const corrections = state.corrections[sourceOf(state, recordIndex) - 1]
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

type MigrationStep = (ctx: MigrationContext) => Promise<StepResult>

interface OpenedMigration extends Pick<MigrationContext, 'settings' | 'journaled' | 'timing'> {
  readonly readIndex: (signal: AbortSignal) => Promise<SourceIndex>
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
  const result = await readIndex(signal)
    .then((sourceIndex) =>
      step({
        ...opened,
        core: patientClient(settings.core),
        sourceIndex,
        signal,
        emit,
        consecutiveLostReplies: 0,
        lastExamination: { failed: state.rows.size, processing: 0, at: timing.elapsedMs() },
      }),
    )
    .catch((error: unknown) => resultOfError(error, signal))
  if (state.begun !== undefined) {
    await journaled.write({ type: 'ended', ...result })
  }
  emit('ended')
  return createReport(state, { result, now: timing.now() })
}

/** Converts an abort and a `CoreError` to the result that they mean, and throws any other error. */
function resultOfError(error: unknown, signal: AbortSignal): StepResult {
  const isCoreError = error instanceof CoreError
  // A core call that fails after the signal aborted is taken to have failed because of the abort.
  if (signal.aborted && (isCoreError || error === signal.reason)) {
    return { state: 'interrupted', findings: [] }
  }
  if (!isCoreError) throw error
  return { state: 'core_fault', findings: [], fault: error.message, faultCode: error.code }
}

/** Runs the steps of `nextStep` one after another, until none is left or the preflight stops the run. */
async function runSteps(ctx: MigrationContext, goal: Goal): Promise<StepResult> {
  const { journaled } = ctx
  let findings: readonly PreflightFinding[] = []
  // The core may have made progress since the run stalled.
  if (journaled.state.stalledRows.size > 0) await journaled.write({ type: 'rest', phase: 'wait' })
  for (;;) {
    ctx.signal.throwIfAborted()
    const step = nextStep(journaled.state, goal)
    if (step === 'end') return { state: finalState(journaled.state), findings }
    if (step !== 'preflight') await STEPS[step](ctx, goal)
    else {
      const { passed, entry, ...found } = await preflight(ctx)
      findings = found.findings
      if (entry !== undefined) await journaled.write({ ...entry, started: passed })
      if (!passed) return { state: 'preflight_failed', findings }
    }
  }
}

type StepFunction = (ctx: MigrationContext, goal: Goal) => Promise<void>

const STEPS: Record<Exclude<RunStep, 'preflight' | 'end'>, StepFunction> = {
  /** After a crash it is unknown when the call was abandoned, so its settle time starts now. */
  resolve_lost_reply: (ctx) => resolveLostReply(ctx, { abandonedAt: ctx.timing.elapsedMs() }),
  delete_rows: deleteRows,
  resolve_identities: resolveIdentities,
  stage,
  wait: waitForImport,
  collect,
  import_directly: importDirectly,
  reconcile,
}

/** Runs the preflight only. */
async function check(ctx: MigrationContext): Promise<StepResult> {
  const { findings, passed, entry } = await preflight(ctx)
  if (entry !== undefined && !ctx.journaled.state.started) await ctx.journaled.write(entry)
  return { state: passed ? finalState(ctx.journaled.state) : 'preflight_failed', findings }
}

/**
 * Looks up each identity again.
 *
 * @throws MigrationError `bad_journal` before the first run.
 */
async function reverify(ctx: MigrationContext): Promise<StepResult> {
  if (!ctx.journaled.state.started) {
    const message = 'nothing has been staged yet: run comes before reconcile'
    throw new MigrationError('bad_journal', message)
  }
  await ctx.journaled.write({ type: 'rest', phase: 'wait', reverify: true })
  return runSteps(ctx, 'verify')
}

/**
 * Deletes the rows that still waited when the run stalled, and looks up their identities.
 *
 * @throws MigrationError `bad_journal` if the run has not stalled.
 */
async function unblock(ctx: MigrationContext): Promise<StepResult> {
  const { state } = ctx.journaled
  const isInProgress = state.toResolve.size > 0 || countOf(state, 'unresolved') > 0
  if (state.stalledRows.size === 0 && !isInProgress) {
    throw new MigrationError('bad_journal', 'no run has stalled: there are no rows to delete')
  }
  await decideDeletion(ctx, [...state.stalledRows.values()])
  return runSteps(ctx, 'unblock')
}

async function applyCorrections(ctx: MigrationContext, source: Source): Promise<void> {
  const open = openCorrections(source, ctx.settings.batchBytes)
  const { digest, ...corrected } = await checkCorrections(ctx, open)
  await ctx.journaled.write({ type: 'corrected', source: originOf(source, digest), ...corrected })
  await ctx.sourceIndex.add(open)
  const { replaced, leftOut, accepted } = corrected
  ctx.emit('corrected', { users: replaced.length + leftOut.length + accepted.length })
}
