import type { CallReport } from './call-report.js'

/** Why a call has no answer; see `ServiceCallError`. */
export type ServiceCallErrorCode = 'network' | 'deadline' | 'token'

/**
 * A call that got no answer. By `code`:
 *
 * - `network`: the last attempt brought no answer or a part of one, or took longer than
 *   `attemptTimeoutMs`. Of a write nobody knows whether it was done.
 * - `deadline`: `deadlineMs` was over while an attempt, or the source of tokens, was waited for.
 * - `token`: the source gave no token; its error is the `cause`. This attempt was not sent.
 */
export class ServiceCallError extends Error {
  override readonly name = 'ServiceCallError'
  /** Why there is no answer. */
  readonly code: ServiceCallErrorCode
  readonly #report: CallReport

  /** `serviceFetch` makes these; `options.cause` is what stands behind it. */
  constructor(code: ServiceCallErrorCode, report: CallReport, options?: ErrorOptions) {
    super(MESSAGES[code], options)
    this.code = code
    this.#report = report
  }

  /** What was done. It may hold the idempotency key and is left out where the error is printed. */
  get report(): CallReport {
    return this.#report
  }
}

const MESSAGES: Record<ServiceCallErrorCode, string> = {
  network: 'the service gave no whole answer',
  deadline: 'the call took longer than its deadline',
  token: 'the call has no token to send',
}
