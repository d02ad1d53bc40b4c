import { INSTALL_PHONE_LIBRARY } from '../../migration/record-validation/phone-plans.js'
import type { Command } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { MIGRATE_OPTIONS } from './migrate-options.js'
import type { MigrateParts } from './run-step.js'

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
  exitCodes: {
    1: 'the preflight found faults; nothing was staged',
    2: 'invalid command, source, corrections or journal, or the journal is in use',
    3: 'the core is unreachable, or its answer is invalid',
    4: 'records need corrections; see the report',
    5: 'not every identity is reconciled; see the report',
    6: 'the core makes no progress; the report lists the rows, which unblock deletes',
    130: 'interrupted',
    '': 'after 1, 3, 6 and 130, run resumes',
  },
  async run(context) {
    const { runStep } = await loadSteps()
    return runStep(parts, context)
  },
})

/**
 * Loads the steps only when they run, because they need google-libphonenumber and no other command does.
 *
 * @throws CommandFailure (2)
 */
async function loadSteps(): Promise<typeof import('./run-step.js')> {
  try {
    return await import('./run-step.js')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    const message = `google-libphonenumber is not installed: run ${INSTALL_PHONE_LIBRARY}`
    throw usageError(message, 'dependency_missing')
  }
}
