import { join } from 'node:path'
import { JOURNAL_FILE } from '../../migration/journal/file-journal.js'
import { corePhoneNumber } from '../../migration/record-validation/phone-number.js'
import { phonePlansFault } from '../../migration/record-validation/phone-plans.js'
import {
  MIGRATION_NUMBERS,
  type Migration,
  type StepOptions,
} from '../../migration/run/migration.js'
import {
  type MigrationReader,
  openMigration,
  readMigration,
} from '../../migration/run/open-migration.js'
import type { MigrationReport } from '../../migration/run/report.js'
import type { Arguments } from '../frame/arguments.js'
import type { CommandContext, CommandResult } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { untilInterrupted } from '../frame/interrupt.js'
import { cleanAway, isThere } from './clean.js'
import {
  readCorrectionRequest,
  readSettings,
  readStep,
  type Subcommand,
} from './migrate-options.js'
import {
  type Files,
  inCommandWords,
  type MigrateParts,
  openCore,
  type Session,
  withMigration,
} from './migrate-session.js'
import {
  EXIT_CODES,
  type ExitStatus,
  listStalledRows,
  reportLines,
  summaryLines,
  verdictOfCheck,
  verdictOn,
} from './report-lines.js'
import { showProgress } from './show-progress.js'
import { type NeedingPerson, NO_ACTION_NEEDED, writeReports } from './write-reports.js'

/**
 * Runs the step that the arguments name.
 *
 * @throws CommandFailure (2 or 3)
 */
export async function runStep(
  parts: MigrateParts,
  context: CommandContext,
): Promise<CommandResult> {
  const fault = phonePlansFault(corePhoneNumber)
  if (fault !== undefined) throw usageError('dependency_missing', fault)
  const { arguments: args } = context
  const step = readStep(args)
  const isReading = step === 'status' || step === 'clean'
  if (isReading || (step === 'unblock' && !args.flag('yes'))) {
    return readReports(parts, step, context)
  }
  const act = actionOf(step, args)
  args.required('source')
  const settings = readSettings(args)
  const { directory } = settings
  if (!CREATES_JOURNAL.includes(step)) await requireJournal(directory)
  const core = await openCore(parts, context)
  const { onProgress, end } = showProgress(context)
  try {
    const open = (files: Files) =>
      openMigration({ ...settings.options, ...files, core, onProgress })
    return await withMigration(parts, settings, open, ({ migration }) =>
      interruptible(context, async (signal) => {
        const report = await act(migration, { signal })
        const isCheck = step === 'check' && !signal.aborted
        const verdict = isCheck ? verdictOfCheck(report) : verdictOn(report)
        return reportStep(step, { report, verdict, migration, directory })
      }),
    )
  } finally {
    end()
  }
}

const interruptible = <Result>(
  { note }: CommandContext,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> => untilInterrupted(work, () => note(INTERRUPTED))

const INTERRUPTED =
  'interrupted: finishing the work in progress; send the same signal again to exit immediately'

/** The steps that may create a journal. With a misspelt path, another step would create an empty journal. */
const CREATES_JOURNAL: readonly Subcommand[] = ['check', 'run']

/** @throws CommandFailure (2) */
async function requireJournal(directory: string): Promise<void> {
  if (await isThere(join(directory, JOURNAL_FILE))) return
  throw usageError('bad_journal', 'the --journal folder contains no journal: check its path')
}

type Action = (migration: Migration, options: StepOptions) => Promise<MigrationReport>

/** @throws CommandFailure (2) */
function actionOf(step: Exclude<Subcommand, 'status' | 'clean'>, args: Arguments): Action {
  if (step !== 'correct') return (migration, options) => migration[step](options)
  const request = readCorrectionRequest(args)
  return (migration, options) => migration.correct(request, options)
}

/** Performs a step that does not call the core. */
async function readReports(
  parts: MigrateParts,
  step: 'status' | 'clean' | 'unblock',
  context: CommandContext,
): Promise<CommandResult> {
  const settings = readSettings(context.arguments)
  const { directory, options } = settings
  await requireJournal(directory)
  const { batchBytes = MIGRATION_NUMBERS.batchBytes.default } = options
  const open = (files: Files) => readMigration({ batchBytes, ...files })
  return withMigration(parts, { ...settings, mayShare: step === 'status' }, open, (session) =>
    interruptible(context, async () => {
      if (step === 'status') return statusOf(session, directory)
      const report = await session.migration.status()
      if (step === 'unblock') return listStalledRows(report)
      return cleanAway(session.files, report, context.arguments.flag('yes'))
    }),
  )
}

/** Does not rewrite the report files after `clean`: the source is gone, and they are complete. */
async function statusOf(
  { migration, files, isShared }: Session<MigrationReader>,
  directory: string,
): Promise<CommandResult> {
  const report = await migration.status()
  if (isShared) return inProgress(report)
  const [source] = files
  const isCleaned = report.state === 'complete' && source && !(await isThere(source.path))
  const needing = isCleaned ? NO_ACTION_NEEDED : undefined
  return reportStep('status', { report, verdict: verdictOn(report), needing, migration, directory })
}

/**
 * Omits the state, findings and advice of the previous step, which are outdated. Writes no files,
 * because the running step writes them.
 */
const inProgress = (report: MigrationReport): CommandResult => ({
  exitCode: EXIT_CODES.interrupted,
  lines: summaryLines(report, 'another step is running'),
  json: {
    step: 'status',
    underWay: true,
    ...report,
    state: 'interrupted',
    findings: [],
    advice: [],
  },
})

interface StepOutcome {
  readonly migration: MigrationReader
  readonly report: MigrationReport
  readonly verdict: ExitStatus
  /** If given, the report files are not written again. */
  readonly needing?: NeedingPerson | undefined
  readonly directory: string
}

async function reportStep(
  step: Subcommand,
  { migration, directory, verdict, ...given }: StepOutcome,
): Promise<CommandResult> {
  const report = { ...given.report, advice: given.report.advice.map(inCommandWords) }
  const needing = given.needing ?? (await writeReports(directory, report, migration))
  const shown = step === 'check' ? report : withoutInvalidRecords(report)
  return {
    exitCode: verdict.exitCode,
    lines: reportLines({ report: shown, standing: verdict.words, needing, directory }),
    json: { step, ...report },
    ...errorLineOf(report),
  }
}

/** For a core fault, the first line of the advice, which describes it. */
const errorLineOf = ({ state, advice: [first] }: MigrationReport): { errorLine?: string } =>
  state === 'core_fault' && first !== undefined ? { errorLine: first } : {}

/** The report lists each record with such a finding among the identities that need action. */
const SHOWN_BY_IDENTITY: readonly string[] = ['record_invalid', 'login_taken', 'login_twice']

const withoutInvalidRecords = (report: MigrationReport): MigrationReport => ({
  ...report,
  findings: report.findings.filter(({ code }) => !SHOWN_BY_IDENTITY.includes(code)),
})
