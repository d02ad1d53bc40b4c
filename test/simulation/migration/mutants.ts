import { type Mutants, mutantsOf } from '../load.js'

/** Wrong versions of the migration, each without one rule of the protocol. */
export const MIGRATION_MUTANTS: Mutants = {
  ...mutantsOf('migration/run/steps/send-call.ts', {
    'a call is not written down before it is sent': [
      "await ctx.journaled.write({ type: 'sent', call })",
      "if (call.kind === 'delete') await ctx.journaled.write({ type: 'sent', call })",
    ],
  }),
  ...mutantsOf('migration/run/state/next-step.ts', {
    'a lost call waits until others are sent': [
      "if (state.unanswered !== undefined) return 'resolve_lost_reply'",
      "if (state.unanswered !== undefined && !hasUnsent(state)) return 'resolve_lost_reply'",
    ],
  }),
  ...mutantsOf('migration/run/run-steps.ts', {
    'a lost call counts as over after a crash': [
      'abandonedAt: ctx.timing.elapsedMs()',
      'abandonedAt: Number.NEGATIVE_INFINITY',
    ],
  }),
  ...mutantsOf('migration/run/steps/resolve-lost-reply.ts', {
    'a lost call counts as over at once': [
      'await timing.sleep(Math.max(0, settledAt - timing.elapsedMs()), signal)',
      '',
    ],
    'any row proves a lost call': [
      'const isStaged = accounts.size === others.length',
      'const isStaged = accounts.size === others.length || rows.size > 0',
    ],
    'a lost deletion counts as done': ['rows.filter((row) => !left.has(row)) }', 'rows }'],
  }),
  ...mutantsOf('migration/run/steps/stage.ts', {
    'whoever is sent again is not looked up': [
      'if (doubtful.length === 0) return batch',
      'if (doubtful) return batch',
    ],
  }),
  'a lost call is sent again without a look': [
    {
      file: 'migration/run/steps/resolve-lost-reply.ts',
      from: 'writeRecordIndexes(recordIndexes.filter(isThere))',
      to: "''",
    },
    {
      file: 'migration/run/steps/stage.ts',
      from: 'if (doubtful.length === 0) return batch',
      to: 'if (doubtful) return batch',
    },
  ],
  ...mutantsOf('migration/run/steps/resolve-identities.ts', {
    'whom the job blames has failed': [
      'if (error !== undefined && isBelieved(error))',
      'if (error !== undefined)',
    ],
  }),
  ...mutantsOf('migration/run/steps/resolve-identities.ts', {
    'a direct import without a reply is not looked up': [
      "if (answer.outcome === 'refused') throw answer",
      'return chunkFailed(record, answer.message)',
    ],
  }),
  ...mutantsOf('migration/run/steps/reconcile.ts', {
    'a row that lands late is not looked for': [
      "(await hasUnrecordedRow(ctx)) ? 'wait' : 'done'",
      "'done'",
    ],
  }),
}
