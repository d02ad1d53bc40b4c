import type { Mutants } from '../load.js'

/** Wrong versions of the migration, each of which breaks another promise. */
export const MIGRATION_MUTANTS: Mutants = {
  'migration/run/state/replay-journal.ts': {
    'a call is not written down before it is sent': [
      'await journal.append(entries.map((entry) => JSON.stringify(entry)))',
      "await journal.append(entries.filter(({ type }) => type !== 'sent').map((entry) => JSON.stringify(entry)))",
    ],
  },
  'migration/run/steps/calls-and-lost-replies.ts': {
    'a lost call is sent again without a look': [
      "{ outcome: 'absent', existing }",
      "{ outcome: 'absent', existing: [] }",
    ],
  },
  'migration/run/steps/stage.ts': {
    'a lost call is sent again without a look': [
      'if (doubtful.length === 0) return',
      'if (doubtful) return',
    ],
  },
  'migration/run/steps/resolve-identities.ts': {
    'whom the job blames has failed': [
      'if (error !== undefined && isBelieved(error))',
      'if (error !== undefined)',
    ],
    'a direct import without a reply is not looked up': [
      "if (error.outcome === 'refused') throw error",
      'return chunkFailed(record, error.message)',
    ],
  },
  'migration/run/steps/reconcile.ts': {
    'a row that lands late is not looked for': [
      "(await hasUnrecordedRow(ctx)) ? 'wait' : 'done'",
      "'done'",
    ],
  },
}
