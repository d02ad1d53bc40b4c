import { join } from 'node:path'
import { JOURNAL_FILE } from '../../migration/journal/journal-folder.js'
import type { MigrationReader } from '../../migration/run/open-migration.js'
import type { MigrationReport } from '../../migration/run/report.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { untilInterrupted } from '../frame/interrupt.js'
import { cleanAway, isThere } from './clean.js'
import { readOrder } from './correction-options.js'
import { EXIT_CODES, type Verdict, verdictOfCheck, verdictOn } from './exit-codes.js'
import {
  MIGRATE_OPTION_GROUPS,
  MIGRATE_OPTIONS,
  readSettings,
  readStep,
  type Step,
} from './migrate-options.js'
import {
  inCommandWords,
  type MigrateParts,
  readCore,
  type Session,
  withMigration,
  withReports,
} from './migrate-session.js'
import { listStalledRows, reportLines, summaryLines } from './report-lines.js'
import { showProgress } from './show-progress.js'
import { type NeedingPerson, NOBODY, writeReports } from './write-reports.js'

/** Creates the command with the functions that it calls. */
export const migrateWith = (parts: MigrateParts): Command => ({
  name: 'migrate',
  summary: 'Moves the accounts of an older identity service into the core, each exactly once',
  usage: [
    'check | run | reconcile CORE --source FILE --journal DIR [...]',
    'correct CORE --source FILE --journal DIR --corrections FILE',
    'correct CORE --source FILE --journal DIR --again CODE...',
    'unblock CORE --source FILE --journal DIR [--yes]',
    'status --journal DIR',
    'clean --journal DIR [--yes]',
  ],
  maxValues: 1,
  options: MIGRATE_OPTIONS,
  optionGroups: MIGRATE_OPTION_GROUPS,
  exit1Help: 'the preflight found faults; nothing was staged',
  exitCodeHelp: [
    ['2', 'invalid command, source, corrections or journal, or the journal is in use'],
    ['3', 'the core is unreachable, or its answer is invalid'],
    ['4', 'records need corrections; see the report'],
    ['5', 'not every identity is reconciled; see the report'],
    ['6', 'the core makes no progress; the report lists the rows, which unblock deletes'],
    ['130', 'interrupted or, for status, still running'],
    ['', 'after 1, 3, 6 and 130, run resumes'],
  ],
  examples: [
    'service-auth migrate run --core https://core --api-key-stdin --source users.ndjson --journal dir',
    'service-auth migrate status --journal journal --json',
    'service-auth migrate clean --journal journal --yes',
  ],
  run: (context) => runStep(parts, context),
})

async function runStep(parts: MigrateParts, context: CommandContext): Promise<CommandResult> {
  const { arguments: args } = context
  const step = readStep(args)
  const isConfirmed = args.flag('yes')
  if (step === 'status' || step === 'clean' || (step === 'unblock' && !isConfirmed)) {
    const settings = readSettings(args)
    await requireJournal(settings.directory)
    return await withReports(parts, { settings, mayShare: step === 'status' }, (session) =>
      untilInterrupted(
        () => readReports(step, session, { directory: settings.directory, isConfirmed }),
        () => context.note(INTERRUPTED),
      ),
    )
  }
  const act = actionOf(step, context)
  args.required('source')
  const settings = readSettings(args)
  const { directory } = settings
  if (!BEGINNING.includes(step)) await requireJournal(directory)
  const core = await readCore(context)
  const view = showProgress(context)
  try {
    const options = { settings, core, onProgress: view.onProgress }
    return await withMigration(parts, options, (session) =>
      untilInterrupted(
        (signal) => act(session, { directory, signal }),
        () => context.note(INTERRUPTED),
      ),
    )
  } finally {
    view.end()
  }
}

const INTERRUPTED =
  'interrupted: finishing the work in progress; send the same signal again to exit immediately'

/** The steps that may create a journal. Another step would create an empty one for a misspelt path. */
const BEGINNING: readonly Step[] = ['check', 'run']

/** @throws CommandFailure (2) */
async function requireJournal(directory: string): Promise<void> {
  if (await isThere(join(directory, JOURNAL_FILE))) return
  throw usageError('bad_journal', 'the --journal folder does not contain a journal')
}

interface Acting {
  /** The folder of the journal. */
  readonly directory: string
  readonly signal: AbortSignal
}

type Action = (session: Session, acting: Acting) => Promise<CommandResult>

/** Performs a step that does not call the core. */
async function readReports(
  step: 'status' | 'clean' | 'unblock',
  session: Session<MigrationReader>,
  { directory, isConfirmed }: { readonly directory: string; readonly isConfirmed: boolean },
): Promise<CommandResult> {
  if (step === 'status') return statusOf(session, directory)
  const report = await session.migration.status()
  if (step === 'unblock') return listStalledRows(report)
  return cleanAway(session.files, report, isConfirmed)
}

/** @throws CommandFailure (2) */
function actionOf(
  step: Exclude<Step, 'status' | 'clean'>,
  { arguments: args }: CommandContext,
): Action {
  switch (step) {
    case 'check':
      return async ({ migration }, { directory, signal }) => {
        const report = await migration.check({ signal })
        const verdict = signal.aborted ? verdictOn(report) : verdictOfCheck(report)
        return reported(step, { report, verdict, migration, directory })
      }
    case 'run':
    case 'reconcile':
      return async ({ migration }, { directory, signal }) =>
        reported(step, { report: await migration[step]({ signal }), migration, directory })
    case 'correct': {
      const order = readOrder(args)
      return async ({ migration }, { directory, signal }) =>
        reported(step, { report: await migration.correct(order, { signal }), migration, directory })
    }
    case 'unblock':
      return async ({ migration }, { directory, signal }) =>
        reported(step, { report: await migration.unblock({ signal }), migration, directory })
  }
}

/** After `clean` the source is gone, so the report files, which are complete, are not rewritten. */
async function statusOf(
  { migration, files, isShared }: Session<MigrationReader>,
  directory: string,
): Promise<CommandResult> {
  const report = await migration.status()
  if (isShared) return underWay(report)
  const [source] = files
  const isCleaned = report.state === 'complete' && source && !(await isThere(source.path))
  const needing = isCleaned ? NOBODY : undefined
  return await reported('status', { report, migration, directory, ...(needing && { needing }) })
}

/**
 * Omits the state, findings and advice of the previous step, which are outdated. Writes no files,
 * because the running step writes them.
 */
const underWay = (report: MigrationReport): CommandResult => ({
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

interface Reported extends Pick<Session<MigrationReader>, 'migration'> {
  readonly report: MigrationReport
  readonly verdict?: Verdict
  /** Given if the files must not be written again. */
  readonly needing?: NeedingPerson
  readonly directory: string
}

async function reported(
  step: Step,
  { report: ended, verdict = verdictOn(ended), migration, directory, ...given }: Reported,
): Promise<CommandResult> {
  const report = { ...ended, advice: ended.advice.map(inCommandWords) }
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
