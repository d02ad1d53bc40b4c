import { isRecord } from '../../base/options.js'
import { CoreError, type CoreErrorCode } from '../core/core-error.js'
import { openCorrections } from '../source/corrections.js'
import type { Source } from '../source/source.js'
import type { Work } from './migration-context.js'
import { MigrationError } from './migration-error.js'
import { originOf } from './read-source.js'
import type { MigrationState, PreflightFinding } from './report.js'
import { isSource } from './settings.js'
import type { Surveyor } from './source-index.js'
import { IDENTITY, isFailureCode } from './state/identity-state.js'
import { type Aim, nextStep, restingState, type Step } from './state/next-step.js'
import { countOf } from './state/run-state.js'
import { judgeCorrections } from './steps/check-corrections.js'
import { collect } from './steps/collect.js'
import { deleteRows } from './steps/delete-rows.js'
import { importDirectly } from './steps/import-directly.js'
import { preflight } from './steps/preflight.js'
import { reconcile } from './steps/reconcile.js'
import { resolveIdentities } from './steps/resolve-identities.js'
import { resolveLostReply } from './steps/resolve-lost-reply.js'
import { sendAgain } from './steps/retry-failed.js'
import { stage } from './steps/stage.js'
import { decideDeletion, wait } from './steps/wait.js'

/** The result of a run. */
export interface Ending {
  readonly state: MigrationState
  readonly findings: readonly PreflightFinding[]
  /** The message of the core error that ended the run. */
  readonly fault?: string
  readonly faultCode?: CoreErrorCode
}

/** Runs one step after another until none is left or one stops the run. */
export async function walk(work: Work, aim: Aim): Promise<Ending> {
  return endingOf(work, async () => {
    const findings: PreflightFinding[] = []
    if (work.ledger.state.stalledRows.size > 0)
      await work.ledger.write({ type: 'rest', phase: 'wait' })
    for (;;) {
      work.signal.throwIfAborted()
      const step = nextStep(work.ledger.state, aim)
      if (step === 'end') return { state: restingState(work.ledger.state), findings }
      const stop = await STEPS[step](work, findings, aim)
      if (stop !== undefined) return { state: stop, findings }
    }
  })
}

/** Runs the preflight only. */
export const check = async (work: Work): Promise<Ending> =>
  endingOf(work, async () => {
    const { findings, passed, entries } = await preflight(work)
    if (entries.length > 0 && !work.ledger.state.started) await work.ledger.write(...entries)
    return { state: passed ? restingState(work.ledger.state) : 'preflight_failed', findings }
  })

/**
 * Looks up each identity again.
 *
 * @throws MigrationError `bad_journal` before the first run.
 */
export async function lookAgain(work: Work): Promise<Ending> {
  if (!work.ledger.state.started) {
    const message = 'nothing has been staged yet: run comes before reconcile'
    throw new MigrationError('bad_journal', message)
  }
  await work.ledger.write({ type: 'rest', phase: 'wait', reverify: true })
  return walk(work, 'look')
}

/**
 * Deletes the rows that still waited when the run stalled, and looks up their identities.
 *
 * @throws MigrationError `bad_journal` if the run has not stalled.
 */
export async function unblock(work: Work): Promise<Ending> {
  const { state } = work.ledger
  const isUnderWay = state.toResolve.size > 0 || countOf(state, IDENTITY.unresolved) > 0
  if (state.stalledRows.size === 0 && !isUnderWay) {
    throw new MigrationError('bad_journal', 'no run has stalled: there are no rows to delete')
  }
  await decideDeletion(work, [...state.stalledRows.values()])
  return walk(work, 'unblock')
}

type TakeStep = (
  work: Work,
  findings: PreflightFinding[],
  aim: Aim,
) => Promise<MigrationState | undefined>

const STEPS: Record<Exclude<Step, 'end'>, TakeStep> = {
  async preflight(work, found) {
    const { findings, passed, entries } = await preflight(work)
    found.push(...findings)
    const last = entries.length - 1
    const written = entries.map((entry, index) => ({ ...entry, started: passed && index === last }))
    if (written.length > 0) await work.ledger.write(...written)
    return passed ? undefined : 'preflight_failed'
  },
  /** After a crash it is unknown when the call was abandoned, so its settle time starts now. */
  resolve_lost_reply: (work) =>
    done(resolveLostReply(work, { givenUpAt: work.timing.elapsedMs() })),
  delete_rows: (work) => done(deleteRows(work)),
  resolve_identities: (work) => done(resolveIdentities(work)),
  stage: (work) => done(stage(work)),
  wait: (work, _, aim) => done(wait(work, aim)),
  collect: (work) => done(collect(work)),
  import_directly: (work) => done(importDirectly(work)),
  reconcile: (work) => done(reconcile(work)),
}

const done = (step: Promise<void>): Promise<undefined> => step.then(() => undefined)

export async function endingOf(work: Work, walked: () => Promise<Ending>): Promise<Ending> {
  try {
    return await walked()
  } catch (error) {
    if (work.signal.aborted && isOf(error, work.signal))
      return { state: 'interrupted', findings: [] }
    if (error instanceof CoreError) {
      const { message, code } = error
      return { state: 'core_fault', findings: [], fault: message, faultCode: code }
    }
    throw error
  }
}

/** A core call that fails after the signal aborted is taken to have failed because of the abort. */
const isOf = (error: unknown, signal: AbortSignal): boolean =>
  error === signal.reason || error instanceof CoreError

type CorrectionRequest = Source | { readonly again: readonly string[] }

/** @throws TypeError if `input` is neither a source nor a list of codes. */
export function parseCorrectionRequest(input: unknown): CorrectionRequest {
  if (isSource(input)) return input
  const codes = isRecord(input) && Object.keys(input).length === 1 ? input['again'] : undefined
  if (Array.isArray(codes) && codes.length > 0 && codes.every(isFailureCode))
    return { again: codes }
  throw new TypeError(
    'correct: corrections must be { file }, { name, records }, or { again } with codes such as ' +
      'E004 or login_taken',
  )
}

/** Journals the corrections, then continues as a run. */
export const correctAndWalk = (
  work: Work,
  surveyor: Surveyor,
  request: CorrectionRequest,
): Promise<Ending> =>
  endingOf(work, async () => {
    if ('again' in request) await sendAgain(work, request.again)
    else await applyCorrections(work, surveyor, request)
    return walk(work, 'finish')
  })

async function applyCorrections(work: Work, surveyor: Surveyor, source: Source): Promise<void> {
  const open = openCorrections(source, work.settings.batchBytes)
  const { digest, ...corrected } = await judgeCorrections(work, open)
  await work.ledger.write({ type: 'corrected', source: originOf(source, digest), ...corrected })
  await surveyor.add(open)
  const { replaced, leftOut, accepted } = corrected
  work.tell('corrected', { users: replaced.length + leftOut.length + accepted.length })
}
