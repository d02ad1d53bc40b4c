import { isObject } from '../../base/options.js'
import { CoreError } from '../core/core-error.js'
import { openCorrections } from '../source/corrections.js'
import type { Source } from '../source/source.js'
import { isSource } from './migration.js'
import type { MigrationContext } from './migration-context.js'
import { MigrationError } from './migration-error.js'
import type { PreflightFinding, StepResult } from './report.js'
import { originOf } from './source-index.js'
import {
  countOf,
  finalState,
  type Goal,
  isFailureCode,
  type MigrationState,
  nextStep,
  type RunStep,
} from './state/run-state.js'
import { decideDeletion, deleteRows, resolveLostReply } from './steps/calls-and-lost-replies.js'
import { checkCorrections, retryFailed } from './steps/correct.js'
import { preflight } from './steps/preflight.js'
import { reconcile } from './steps/reconcile.js'
import { collect, importDirectly, resolveIdentities } from './steps/resolve-identities.js'
import { stage } from './steps/stage.js'
import { waitForImport } from './steps/wait-for-import.js'

/** Runs the steps of `nextStep` one after another, until none is left or one stops the run. */
export async function runSteps(ctx: MigrationContext, goal: Goal): Promise<StepResult> {
  const findings: PreflightFinding[] = []
  // The core may have made progress since the run stalled.
  if (ctx.journaled.state.stalledRows.size > 0) {
    await ctx.journaled.write({ type: 'rest', phase: 'wait' })
  }
  for (;;) {
    ctx.signal.throwIfAborted()
    const step = nextStep(ctx.journaled.state, goal)
    if (step === 'end') return { state: finalState(ctx.journaled.state), findings }
    const stop = await STEPS[step](ctx, findings, goal)
    if (stop !== undefined) return { state: stop, findings }
  }
}

/** Runs the preflight only. */
export async function check(ctx: MigrationContext): Promise<StepResult> {
  const { findings, passed, entry } = await preflight(ctx)
  if (entry !== undefined && !ctx.journaled.state.started) await ctx.journaled.write(entry)
  return { state: passed ? finalState(ctx.journaled.state) : 'preflight_failed', findings }
}

/**
 * Looks up each identity again.
 *
 * @throws MigrationError `bad_journal` before the first run.
 */
export async function reverify(ctx: MigrationContext): Promise<StepResult> {
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
export async function unblock(ctx: MigrationContext): Promise<StepResult> {
  const { state } = ctx.journaled
  const isInProgress = state.toResolve.size > 0 || countOf(state, 'unresolved') > 0
  if (state.stalledRows.size === 0 && !isInProgress) {
    throw new MigrationError('bad_journal', 'no run has stalled: there are no rows to delete')
  }
  await decideDeletion(ctx, [...state.stalledRows.values()])
  return runSteps(ctx, 'unblock')
}

/** Resolves with the state in which the run stops, or with `undefined` if the run continues. */
type StepFunction = (
  ctx: MigrationContext,
  findings: PreflightFinding[],
  goal: Goal,
) => Promise<MigrationState | undefined>

const STEPS: Record<Exclude<RunStep, 'end'>, StepFunction> = {
  async preflight(ctx, found) {
    const { findings, passed, entry } = await preflight(ctx)
    found.push(...findings)
    if (entry !== undefined) await ctx.journaled.write({ ...entry, started: passed })
    return passed ? undefined : 'preflight_failed'
  },
  /** After a crash it is unknown when the call was abandoned, so its settle time starts now. */
  resolve_lost_reply: (ctx) =>
    continueAfter(resolveLostReply(ctx, { abandonedAt: ctx.timing.elapsedMs() })),
  delete_rows: (ctx) => continueAfter(deleteRows(ctx)),
  resolve_identities: (ctx) => continueAfter(resolveIdentities(ctx)),
  stage: (ctx) => continueAfter(stage(ctx)),
  wait: (ctx, _, goal) => continueAfter(waitForImport(ctx, goal)),
  collect: (ctx) => continueAfter(collect(ctx)),
  import_directly: (ctx) => continueAfter(importDirectly(ctx)),
  reconcile: (ctx) => continueAfter(reconcile(ctx)),
}

const continueAfter = (step: Promise<void>): Promise<undefined> => step.then(() => undefined)

/** Runs a step. Converts an abort and a `CoreError` to the result that they mean. */
export async function runToResult(
  signal: AbortSignal,
  step: () => Promise<StepResult>,
): Promise<StepResult> {
  try {
    return await step()
  } catch (error) {
    const isCoreError = error instanceof CoreError
    // A core call that fails after the signal aborted is taken to have failed because of the abort.
    if (signal.aborted && (isCoreError || error === signal.reason)) {
      return { state: 'interrupted', findings: [] }
    }
    if (!isCoreError) throw error
    return { state: 'core_fault', findings: [], fault: error.message, faultCode: error.code }
  }
}

/** Corrections, or the records that failed or were held back with one of the codes. */
export type CorrectionRequest = Source | { readonly again: readonly string[] }

/** @throws TypeError if `input` is neither a source nor a list of codes. */
export function parseCorrectionRequest(input: unknown): CorrectionRequest {
  if (isSource(input)) return input
  const codes = isObject(input) && Object.keys(input).length === 1 ? input['again'] : undefined
  if (Array.isArray(codes) && codes.length > 0 && codes.every(isFailureCode))
    return { again: codes }
  throw new TypeError(
    'correct: corrections must be { file }, { name, records }, or { again } with codes such as ' +
      'E004 or login_taken',
  )
}

/** Journals the corrections, then continues as a run. */
export async function correctAndRun(
  ctx: MigrationContext,
  request: CorrectionRequest,
): Promise<StepResult> {
  if ('again' in request) await retryFailed(ctx, request.again)
  else await applyCorrections(ctx, request)
  return runSteps(ctx, 'migrate')
}

async function applyCorrections(ctx: MigrationContext, source: Source): Promise<void> {
  const open = openCorrections(source, ctx.settings.batchBytes)
  const { digest, ...corrected } = await checkCorrections(ctx, open)
  await ctx.journaled.write({ type: 'corrected', source: originOf(source, digest), ...corrected })
  await ctx.sourceIndex.add(open)
  const { replaced, leftOut, accepted } = corrected
  ctx.emit('corrected', { users: replaced.length + leftOut.length + accepted.length })
}
