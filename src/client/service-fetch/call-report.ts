/**
 * Why an attempt gave no answer:
 *
 * - `network`: there was none within `attemptTimeoutMs`, or only a part of one.
 * - `deadline`: `deadlineMs` was over.
 * - `token`: the source gave no token.
 * - `aborted`: the caller's signal.
 */
export type AttemptError = 'network' | 'deadline' | 'token' | 'aborted'

/** One attempt of a call: its answer's status, or why it got none. */
export interface AttemptReport {
  /** Of the answer, where one came. */
  readonly status?: number
  /** Why no answer came. */
  readonly error?: AttemptError
  /** Milliseconds waited before this attempt. */
  readonly waitedMs: number
}

/** What was done for one call. */
export interface CallReport {
  /** In their order, 1 or more. */
  readonly attempts: readonly AttemptReport[]
  /** Whether the answer is a kept one: the work was done by an earlier attempt, or another call. */
  readonly replayed: boolean
  /** Milliseconds, all attempts and waits together. */
  readonly totalMs: number
  /** As it was sent. */
  readonly idempotencyKey?: string
}

/** Called when a call is over. What it throws or rejects with changes nothing. */
export type CallObserver = (report: Omit<CallReport, 'idempotencyKey'>) => unknown

const reports = new WeakMap<Response, CallReport>()

export function withReport(response: Response, report: CallReport): Response {
  reports.set(response, report)
  return response
}

/**
 * What was done for the call that this is the response of.
 *
 * @throws TypeError for any response that no `serviceFetch` has returned, clones included.
 */
export function reportOf(response: Response): CallReport {
  const report = reports.get(response)
  if (report === undefined) throw new TypeError('reportOf: not a response of a serviceFetch')
  return report
}

/** Tells the observer; the key is left out. */
export function tellCall(observe: CallObserver | undefined, report: CallReport): void {
  if (observe === undefined) return
  const { attempts, replayed, totalMs } = report
  try {
    const returned = observe(Object.freeze({ attempts, replayed, totalMs }))
    if (typeof returned === 'object') Promise.resolve(returned).catch(() => {})
  } catch {
    // The call stands, whatever an observer throws.
  }
}
