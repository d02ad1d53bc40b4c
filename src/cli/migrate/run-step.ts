import { join } from 'node:path'
import type { CoreClient } from '../../migration/core/core-client.js'
import { CoreError } from '../../migration/core/core-error.js'
import { CLIENT_NUMBERS, type CoreClientOptions } from '../../migration/core/open-core-client.js'
import type { Journal } from '../../migration/journal/file-journal.js'
import { JOURNAL_FILE } from '../../migration/journal/file-journal.js'
import { corePhoneNumber } from '../../migration/record-validation/normalise.js'
import { phonePlansFault } from '../../migration/record-validation/phone-plans.js'
import {
  MIGRATION_NUMBERS,
  type Migration,
  type MigrationSettings,
  parseSettings,
  type StepOptions,
} from '../../migration/run/migration.js'
import { MigrationError } from '../../migration/run/migration-error.js'
import { openReader, openReplayed } from '../../migration/run/open-migration.js'
import type { MigrationReport } from '../../migration/run/report.js'
import type { Origin } from '../../migration/run/state/journal-entry.js'
import { type JournaledState, replayJournal } from '../../migration/run/state/replay-journal.js'
import type { Arguments } from '../frame/arguments.js'
import type { CommandContext, CommandResult } from '../frame/command.js'
import { untilInterrupted } from '../frame/command.js'
import { type FailureCode, unreachableError, usageError } from '../frame/command-failure.js'
import { readTextFile } from '../input/private-file.js'
import { readStandardInput } from '../input/standard-input.js'
import { cleanAway, isThere, type OriginFile } from './clean.js'
import {
  inCommandWords,
  type MigrateSettings,
  readCorrectionRequest,
  readNumbers,
  readSettings,
  readStep,
  type Subcommand,
} from './migrate-options.js'
import {
  type ExitStatus,
  listStalledRows,
  type NeedingPerson,
  NO_ACTION_NEEDED,
  reportLines,
  verdictOfCheck,
  verdictOn,
  writeReports,
} from './reports.js'
import { showProgress } from './show-progress.js'

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
  if (fault !== undefined) throw usageError(fault, 'dependency_missing')
  const { arguments: args } = context
  const step = readStep(args)
  const settings = readSettings(args)
  const { directory } = settings
  if (step === 'status' || step === 'clean' || (step === 'unblock' && !args.has('yes'))) {
    await requireJournal(directory)
    return withSession(parts, settings, (session) => readReports(step, args, settings, session))
  }
  const act = actionOf(step, args)
  args.required('source')
  if (!CREATES_JOURNAL.includes(step)) await requireJournal(directory)
  const core = await openCore(parts, context)
  return withSession(parts, settings, ({ journaled, sources }) => {
    const onProgress = showProgress(context)
    const options = parseSettings({ ...settings.options, ...sources, core, onProgress })
    const migration = openReplayed(options, journaled)
    const work = async (signal: AbortSignal) => {
      const report = inOwnWords(await act(migration, { signal }))
      const isCheck = step === 'check' && !signal.aborted
      const verdict = isCheck ? verdictOfCheck(report) : verdictOn(report)
      const needing = await writeReports(directory, report, migration)
      return reportStep(step, { report, verdict, needing, directory })
    }
    return untilInterrupted(work, () => context.note(INTERRUPTED))
  })
}

const INTERRUPTED =
  'interrupted: finishing the work in progress; send the same signal again to exit immediately'

/** The steps that may create a journal. With a misspelt path, another step would create an empty journal. */
const CREATES_JOURNAL: readonly Subcommand[] = ['check', 'run']

/** @throws CommandFailure (2) */
async function requireJournal(directory: string): Promise<void> {
  if (await isThere(join(directory, JOURNAL_FILE))) return
  throw usageError('the --journal folder contains no journal: check its path', 'bad_journal')
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
  step: 'status' | 'clean' | 'unblock',
  args: Arguments,
  { directory, options }: MigrateSettings,
  { journaled, files, sources }: Session,
): Promise<CommandResult> {
  const { batchBytes = MIGRATION_NUMBERS.batchBytes.default } = options
  const migration = openReader({ batchBytes, ...sources }, journaled)
  const report = inOwnWords(await migration.status())
  if (step === 'unblock') return listStalledRows(report)
  if (step === 'clean') return cleanAway(files, report, args.has('yes'))
  const [source] = files
  // After `clean`, the source is gone, and the report files are complete.
  const isCleaned = report.state === 'complete' && source && !(await isThere(source.path))
  const needing = isCleaned ? NO_ACTION_NEEDED : await writeReports(directory, report, migration)
  return reportStep(step, { report, verdict: verdictOn(report), needing, directory })
}

interface StepOutcome {
  readonly report: MigrationReport
  readonly verdict: ExitStatus
  readonly needing: NeedingPerson
  readonly directory: string
}

function reportStep(step: Subcommand, { verdict, ...outcome }: StepOutcome): CommandResult {
  const { report } = outcome
  const shown = step === 'check' ? report : withoutInvalidRecords(report)
  return {
    exitCode: verdict.exitCode,
    lines: reportLines({ ...outcome, report: shown, standing: verdict.words }),
    json: { step, ...report },
    ...errorLineOf(report),
  }
}

const inOwnWords = (report: MigrationReport): MigrationReport => ({
  ...report,
  advice: report.advice.map(inCommandWords),
})

/** For a core fault, the first line of the advice, which describes it. */
const errorLineOf = ({ state, advice: [first] }: MigrationReport): { errorLine?: string } =>
  state === 'core_fault' && first !== undefined ? { errorLine: first } : {}

/** The report lists each record with such a finding among the identities that need action. */
const SHOWN_BY_IDENTITY: readonly string[] = ['record_invalid', 'login_taken', 'login_twice']

const withoutInvalidRecords = (report: MigrationReport): MigrationReport => ({
  ...report,
  findings: report.findings.filter(({ code }) => !SHOWN_BY_IDENTITY.includes(code)),
})

/** The functions of the package that `migrate` calls, so that tests can replace them. */
export interface MigrateParts {
  readonly coreClient: (options: CoreClientOptions) => CoreClient
  readonly fileJournal: (directory: string) => Promise<Journal>
}

/**
 * Creates the client of the core that the options name.
 *
 * @throws CommandFailure (2)
 */
async function openCore(
  { coreClient }: MigrateParts,
  context: CommandContext,
): Promise<CoreClient> {
  const { arguments: args } = context
  const options = {
    baseUrl: args.required('core'),
    apiKey: await readApiKey(context),
    allowInsecureHttp: args.has('allow-insecure-http'),
    ...readNumbers(args, CLIENT_NUMBERS),
  }
  try {
    return coreClient(options)
  } catch (error) {
    if (error instanceof TypeError) throw usageError(inCommandWords(error.message))
    throw error
  }
}

/** An open journal that has been read, and the files that it names. */
interface Session {
  readonly journaled: JournaledState
  /** The source first, then the corrections in their order. */
  readonly files: readonly OriginFile[]
  readonly sources: Pick<MigrationSettings, 'journal' | 'source' | 'corrections'>
}

/**
 * Opens the journal, reads it and runs `work`, then closes it.
 *
 * @throws CommandFailure (2 or 3)
 */
async function withSession<Result>(
  { fileJournal }: MigrateParts,
  { directory, sourceFile }: MigrateSettings,
  work: (session: Session) => Promise<Result>,
): Promise<Result> {
  try {
    const journal = await fileJournal(directory)
    try {
      const journaled = await replayJournal(journal)
      const { begun, corrections } = journaled.state
      const [source] = begun === undefined ? [] : filesOf([begun.source])
      // It may differ from the path in the journal, because the run compares the digests only.
      const path = sourceFile ?? source?.path
      if (path === undefined) {
        throw usageError('--source is missing: the journal has no run yet')
      }
      const corrected = filesOf(corrections)
      const sources = {
        journal,
        source: { file: path },
        corrections: corrected.map((each) => ({ file: each.path })),
      }
      const files = [{ path, digest: source?.digest ?? '' }, ...corrected]
      return await work({ journaled, files, sources })
    } finally {
      await journal.close()
    }
  } catch (error) {
    throw asFailure(error)
  }
}

/** Leaves out sources that are not files; only a program that calls the package has such. */
const filesOf = (origins: readonly Origin[]): OriginFile[] =>
  origins.filter(({ file }) => file).map(({ name, digest }) => ({ path: name, digest }))

function asFailure(error: unknown): unknown {
  if (error instanceof MigrationError) return usageError(inCommandWords(error.message), error.code)
  if (error instanceof CoreError) {
    const message = inCommandWords(error.message)
    return unreachableError('core_fault', `${message}; the journal contains all completed work`)
  }
  return error
}

/** A key that fits in a header; the core allows only letters, digits, `=` and `-`. */
const HEADER_VALUE = /^[\x21-\x7e]+$/

/**
 * Reads the API key of the core, from a file that only its owner can read or from standard input.
 *
 * @throws CommandFailure (2), without any part of the key.
 */
async function readApiKey(
  context: Pick<CommandContext, 'arguments' | 'stdin' | 'note'>,
): Promise<string> {
  const { arguments: args } = context
  if (args.either('api-key-file', 'api-key-stdin') === 'api-key-stdin') {
    return checked(await readStandardInput(context, 'the API key'), 'input', 'standard input')
  }
  const text = await readTextFile('--api-key-file', args.required('api-key-file'), 'secret')
  return checked(text.replace(/\r?\n$/, ''), 'file', 'the --api-key-file file')
}

function checked(key: string, code: FailureCode, place: string): string {
  if (HEADER_VALUE.test(key)) return key
  throw usageError(`${place} must contain only an API key: one word in ASCII`, code)
}
