import { LazySignal } from '../../../base/lazy-signal.js'
import type {
  CoupledEnding,
  CoupledFinding,
  RecordFinding,
} from '../../../idempotency/coupled/coupled-store.js'
import type { BeginResult } from '../sql/begin-statements.js'
import type { RecordRow } from '../sql/record-statements.js'

/**
 * The stage of a run.
 *
 * - `beginning`: it is not known yet whether the handler may run.
 * - `skipped`: the handler may not run, because of `finding`.
 * - `running`: the handler is running.
 * - `rolling_back`: the handler has answered, and its writes are rolled back.
 * - `writing_record`: the handler has answered, and its record is being written.
 * - `committing`: COMMIT may have been sent; without a reply, its outcome is unknown.
 * - `failed`: the handler has answered, but the server failed; the run rolls back.
 * - `timed_out`: the run took too long; nothing of it will be committed.
 */
export type RunStage =
  | { readonly name: 'beginning' }
  | { readonly name: 'skipped'; readonly finding: CoupledFinding }
  | { readonly name: 'running' }
  | { readonly name: 'rolling_back'; readonly ending: CoupledEnding }
  | { readonly name: 'writing_record'; readonly ending: RecordedEnding }
  | { readonly name: 'committing'; readonly ending: RecordedEnding }
  | { readonly name: 'failed' }
  | { readonly name: 'timed_out'; readonly reason: 'store_unavailable' | 'timed_out' }

/** An ending whose answer can be committed with the handler's writes. */
export type RecordedEnding = Exclude<CoupledEnding, { readonly type: 'roll_back' }>

/**
 * - `begun`: the lock was tried, and the record was looked for.
 * - `answered`: the handler has answered. `keepsWrites`: its writes are kept even if it refuses.
 * - `server_failed`: the handler's answer does not count.
 * - `commit`: from here on the transaction may commit.
 * - `timeout`: the time limit was reached.
 */
export type StageEvent =
  | { readonly type: 'begun'; readonly result: BeginResult }
  | { readonly type: 'answered'; readonly ending: CoupledEnding; readonly keepsWrites: boolean }
  | { readonly type: 'server_failed' }
  | { readonly type: 'commit' }
  | { readonly type: 'timeout' }

/** Returns the stage after an event. An event that does not fit the stage changes nothing. */
export function nextStage(stage: RunStage, event: StageEvent): RunStage {
  switch (event.type) {
    case 'begun':
      return stage.name === 'beginning' ? afterBegin(event.result) : stage
    case 'answered':
      return stage.name === 'running' ? afterAnswer(event.ending, event.keepsWrites) : stage
    case 'server_failed':
      return stage.name === 'writing_record' || stage.name === 'rolling_back'
        ? { name: 'failed' }
        : stage
    case 'commit':
      return stage.name === 'writing_record' ? { name: 'committing', ending: stage.ending } : stage
    case 'timeout':
      return afterTimeout(stage)
  }
}

/** The record comes first: every one of many simultaneous replays finds it, but only one gets the lock. */
function afterBegin(result: BeginResult): RunStage {
  if (result.found === 'record') return { name: 'skipped', finding: findingOf(result.record) }
  if (result.found === 'other_run') return { name: 'skipped', finding: { outcome: 'running' } }
  return { name: 'running' }
}

export function findingOf({ isSame, result, usedToken }: RecordRow): RecordFinding {
  if (!isSame) return { outcome: 'mismatch' }
  if (result === undefined) return { outcome: 'result_not_stored' }
  return { outcome: 'finished', result, usedToken }
}

function afterAnswer(ending: CoupledEnding, keepsWrites: boolean): RunStage {
  if (ending.type === 'roll_back') return { name: 'rolling_back', ending }
  const isCommitted = ending.type === 'commit' || keepsWrites
  return isCommitted ? { name: 'writing_record', ending } : { name: 'rolling_back', ending }
}

function afterTimeout(stage: RunStage): RunStage {
  switch (stage.name) {
    case 'beginning':
      return { name: 'timed_out', reason: 'store_unavailable' }
    case 'running':
    case 'writing_record':
      return { name: 'timed_out', reason: 'timed_out' }
    default:
      return stage
  }
}

/** The stage of a run, and its timer. */
export interface RunControl {
  readonly stage: RunStage
  /** Aborts when the run times out. */
  readonly signal: AbortSignal
  dispatch(event: StageEvent): void
  /** Restarts the timer: the stage may take `ms`. It does not keep the process alive. */
  startTimer(ms: number): void
  /** Rejects if the timer ends first. */
  withinTimeLimit<T>(work: Promise<T>): Promise<T>
  stopTimer(): void
}

export function createRunControl(): RunControl {
  let timer: NodeJS.Timeout | undefined
  let reject: (reason: Error) => void
  const timeout = new Promise<never>((_resolve, rejectTimeout) => {
    reject = rejectTimeout
  })
  timeout.catch(() => {})

  function dispatch(event: StageEvent): void {
    control.stage = nextStage(control.stage, event)
    if (control.stage.name === 'timed_out') control.abort()
  }

  const control = Object.assign(new LazySignal(), {
    stage: { name: 'beginning' } as RunStage,
    dispatch,
    startTimer(ms: number) {
      clearTimeout(timer)
      timer = setTimeout(() => {
        dispatch({ type: 'timeout' })
        reject(new Error('timed out'))
      }, ms)
      timer.unref()
    },
    withinTimeLimit: <T>(work: Promise<T>) => Promise.race([work, timeout]),
    stopTimer: () => clearTimeout(timer),
  })
  return control
}
