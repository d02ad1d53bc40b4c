import type { StepOptions } from '../migration/run/migration.js'
import type { MigrationReport } from '../migration/run/report.js'
import type { Command, CommandContext, CommandResult } from './command.js'
import { cleanAway } from './migrate-clean.js'
import { readOrder } from './migrate-correct.js'
import { untilInterrupted } from './migrate-interrupt.js'
import { reportLines } from './migrate-lines.js'
import { MIGRATE_OPTIONS, readSettings, readStep, type Step } from './migrate-options.js'
import { showProgress } from './migrate-progress.js'
import { writeReports } from './migrate-reports.js'
import {
  type MigrateParts,
  NO_CORE,
  readCore,
  type Session,
  withMigration,
} from './migrate-session.js'
import { EXIT_CODES } from './migrate-states.js'

/** The command over its parts. */
export const migrateWith = (parts: MigrateParts): Command => ({
  name: 'migrate',
  summary: 'Moves the accounts of an older identity service into the core, each exactly once',
  usage: [
    'check | run | reconcile CORE --source FILE --journal DIR [...]',
    'correct CORE --source FILE --journal DIR --corrections FILE',
    'correct CORE --source FILE --journal DIR --again CODE...',
    'status --journal DIR',
    'clean --journal DIR [--yes]',
    '   CORE: --core URL and --api-key-file FILE or --api-key-stdin',
  ],
  maxValues: 1,
  options: MIGRATE_OPTIONS,
  oneMeans: 'the preflight has objections; nothing was staged',
  moreExitCodes: [
    ['4', 'records wait for corrections; see the report'],
    ['5', 'not every identity is proved; see the report'],
    ['6', 'nothing moves at the core'],
    ['130', 'interrupted'],
    ['', 'after 1, 3, 6 and 130 run goes on where it was'],
  ],
  examples: [
    'service-auth migrate check --core https://core.internal --api-key-file core.key --source users.ndjson --journal journal',
    'service-auth migrate status --journal journal --json',
    'service-auth migrate clean --journal journal --yes',
  ],
  run: (context) => runStep(parts, context),
})

async function runStep(parts: MigrateParts, context: CommandContext): Promise<CommandResult> {
  const { arguments: given } = context
  const step = readStep(given)
  const act = actionOf(step, context)
  const asksNoCore = step === 'status' || step === 'clean'
  if (!asksNoCore) given.required('source')
  const settings = readSettings(given)
  const core = asksNoCore ? NO_CORE : await readCore(context)
  const view = showProgress(context)
  try {
    const options = { settings, core, onProgress: view.onProgress }
    return await withMigration(parts, options, (session) =>
      untilInterrupted(context, (signal) =>
        act(session, { directory: settings.directory, options: { signal } }),
      ),
    )
  } finally {
    view.end()
  }
}

interface Acting {
  /** Of the journal. */
  readonly directory: string
  readonly options: StepOptions
}

type Action = (session: Session, acting: Acting) => Promise<CommandResult>

/** @throws CommandFailure (2) */
function actionOf(step: Step, { arguments: given }: CommandContext): Action {
  switch (step) {
    case 'check':
    case 'run':
    case 'reconcile':
      return async ({ migration }, { directory, options }) =>
        reported(step, { report: await migration[step](options), migration, directory })
    case 'status':
      return async ({ migration }, { directory }) =>
        reported(step, { report: await migration.status(), migration, directory })
    case 'correct': {
      const order = readOrder(given)
      return async ({ migration }, { directory, options }) =>
        reported(step, { report: await migration.correct(order, options), migration, directory })
    }
    case 'clean': {
      const isTold = given.flag('yes')
      return async ({ migration, files }) => cleanAway(files, await migration.status(), isTold)
    }
  }
}

interface Reported extends Pick<Session, 'migration'> {
  readonly report: MigrationReport
  readonly directory: string
}

async function reported(
  step: Step,
  { report, migration, directory }: Reported,
): Promise<CommandResult> {
  const needing = await writeReports(directory, report, migration)
  return {
    exitCode: EXIT_CODES[report.state],
    lines: reportLines({ report, needing, directory }),
    json: { step, ...report },
  }
}
