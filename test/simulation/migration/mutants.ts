import type { Mutation } from '../load.js'

const RUN = 'migration/run'
const LOST = `${RUN}/steps/resolve-lost-reply.ts`
const STAGE = `${RUN}/steps/stage.ts`
const COLLECT = `${RUN}/steps/collect.ts`
const RECONCILE = `${RUN}/steps/reconcile.ts`

const one = (file: string, from: string, to: string): readonly Mutation[] => [{ file, from, to }]

/** Wrong versions of the migration, each without one rule of the protocol. */
export const MIGRATION_MUTANTS: Readonly<Record<string, readonly Mutation[]>> = {
  'a lost call counts as over at once': one(
    LOST,
    'let hasEnded = timing.elapsedMs() >= settledAt',
    'let hasEnded = true',
  ),
  'a lost call counts as over after a crash': one(
    `${RUN}/run-steps.ts`,
    'abandonedAt: ctx.timing.elapsedMs()',
    'abandonedAt: Number.NEGATIVE_INFINITY',
  ),
  'any row proves a lost call': one(
    LOST,
    "if (ctx.journaled.state.hadLostReply[recordIndex] === 0) return 'proof'",
    "return 'proof'",
  ),
  'a lost call is sent again without a look': [
    ...one(LOST, 'writeRecordIndexes(recordIndexes.filter(isThere))', "''"),
    ...one(STAGE, 'if (doubtful.length === 0) return batch', 'if (doubtful) return batch'),
  ],
  'whoever is sent again is not looked up': one(
    STAGE,
    'if (doubtful.length === 0) return batch',
    'if (doubtful) return batch',
  ),
  'a lost deletion counts as done': one(LOST, 'rows.filter((row) => !left.has(row)) }', 'rows }'),
  'whom the job blames has failed': one(
    COLLECT,
    'if (error !== undefined && isBelieved(error))',
    'if (error !== undefined)',
  ),
  'a row that lands late is not looked for': one(
    RECONCILE,
    "(await hasUnrecordedRow(ctx)) ? 'wait' : 'done'",
    "'done'",
  ),
}
