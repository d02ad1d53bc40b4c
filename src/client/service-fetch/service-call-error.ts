import { systemCodeOf } from '../../base/connection-fault.js'
import { TokenSourceError } from '../token-source/token-source-error.js'
import type { CallReport } from './call-report.js'

/** The reason why a call got no response; see `ServiceCallError`. */
export type ServiceCallErrorCode = 'network' | 'deadline' | 'token'

/**
 * The error of a call that got no response. By `code`:
 *
 * - `network`: the last attempt got no response or an incomplete one, or took longer than
 *   `attemptTimeoutMs`. It is unknown whether a write took effect.
 * - `deadline`: `deadlineMs` passed while the call waited for a response, a token or its own body.
 * - `token`: the source returned no token; its error is the `cause`. The last attempt was not sent.
 */
export class ServiceCallError extends Error {
  override readonly name = 'ServiceCallError'
  /** The reason why there is no response. */
  readonly code: ServiceCallErrorCode
  readonly #report: CallReport

  /** Only `serviceFetch` creates these errors; `options.cause` is the underlying error. */
  constructor(code: ServiceCallErrorCode, report: CallReport, options?: ErrorOptions) {
    super(describeFailure(code, options?.cause), options)
    this.code = code
    this.#report = report
  }

  /** The report on the call. May hold the idempotency key, so it is not printed with the error. */
  get report(): CallReport {
    return this.#report
  }
}

/** Says of the cause only what holds no secrets. */
function describeFailure(code: ServiceCallErrorCode, cause: unknown): string {
  if (cause instanceof TokenSourceError) return cause.message
  const systemCode = systemCodeOf(cause)
  return systemCode === undefined ? MESSAGES[code] : `${MESSAGES[code]}: ${systemCode}`
}

const MESSAGES: Record<ServiceCallErrorCode, string> = {
  network: 'the service gave no whole answer',
  deadline: 'the call took longer than its deadline',
  token: 'the call has no token to send',
}
