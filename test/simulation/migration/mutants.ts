import type { Mutation } from '../load.js'

const RUN = 'migration/run'
const LOST = `${RUN}/steps/resolve-lost-reply.ts`
const STAGE = `${RUN}/steps/stage.ts`
const COLLECT = `${RUN}/steps/collect.ts`
const RECONCILE = `${RUN}/steps/reconcile.ts`

const DIRECT = `${RUN}/steps/resolve-identities.ts`
const NEXT = `${RUN}/state/next-step.ts`
const WAIT = `${RUN}/steps/wait-for-import.ts`

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
  'a call is not written down before it is sent': one(
    `${RUN}/steps/send-call.ts`,
    "await ctx.journaled.write({ type: 'sent', call })",
    "if (call.kind === 'delete') await ctx.journaled.write({ type: 'sent', call })",
  ),
  'a lost call waits until others are sent': one(
    NEXT,
    "if (state.unanswered !== undefined) return 'resolve_lost_reply'",
    "if (state.unanswered !== undefined && !hasUnsent(state)) return 'resolve_lost_reply'",
  ),
  'whoever is sent again may have a row': one(
    STAGE,
    'if (asked.has(recordIndex)) rows.add(recordIndex)',
    'if (asked.has(-recordIndex)) rows.add(recordIndex)',
  ),
  'an old row fails a correction': one(COLLECT, 'isDecided(ctx, recordIndex) ||', ''),
  'whoever holds a login is not looked up': one(
    COLLECT,
    "if (taken === undefined) return { ...about, as: 'unresolved' }",
    "if (taken ?? true) return { ...about, as: 'unresolved' }",
  ),
  'a row whose user has an account is left': one(
    WAIT,
    'if (hasAccount || taken !== undefined) blocking.push(row)',
    'if (taken !== undefined) blocking.push(row)',
  ),
  'a row whose login is taken is left': one(
    WAIT,
    'if (hasAccount || taken !== undefined) blocking.push(row)',
    'if (hasAccount) blocking.push(row)',
  ),
  'an account of whoever has failed is not looked for': one(
    RECONCILE,
    'if (coreUserId === undefined) return undefined',
    'return undefined',
  ),
  'a deleted row counts as refused': one(
    DIRECT,
    "if (coreUserId !== undefined) return { as: 'hasAccount', record: recordIndex }\n    const",
    'const',
  ),
  'a direct import without a reply is not looked up': one(
    DIRECT,
    "if (answer.outcome === 'refused') throw answer",
    'return chunkFailed(record, answer.message)',
  ),
  'a direct import without a reason is not repeated': one(
    DIRECT,
    'return isUnexplained(resolution) ? undefined : resolution',
    'return resolution',
  ),
  'users are imported directly while rows wait': one(
    NEXT,
    "if (state.phase === 'wait') return 'wait'",
    "if (goal === 'migrate' && countOf(state, IDENTITY_STATE.to_import) > 0) return 'import_directly'\n  if (state.phase === 'wait') return 'wait'",
  ),
  'row counts are proof': one(NEXT, 'state.rows.size === 0 &&', 'state.rows.size === 0 ||'),
  'one poll without rows ends the wait': one(
    WAIT,
    'const EMPTY_POLLS = 2',
    'const EMPTY_POLLS = 1',
  ),
  'accounts are read before rows': one(
    LOST,
    'const existing = await newRowsOf(ctx, recordIndexes)',
    'await findAccounts(ctx, ctx.sourceIndex.externalIdsOf(recordIndexes, ctx.signal), { untilOneHasNone: false })\n  const existing = await newRowsOf(ctx, recordIndexes)',
  ),
}
