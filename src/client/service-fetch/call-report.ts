import { notify } from '../../base/decision/observers.js'
import { systemCodeOf } from '../../base/fetch.js'
import { TokenSourceError } from '../token-source/token-source-error.js'

/**
 * The reason why an attempt got no response:
 *
 * - `network`: there was no response within `attemptTimeoutMs`, or an incomplete one.
 * - `deadline`: `deadlineMs` passed.
 * - `token`: the source returned no token.
 * - `aborted`: the caller's signal aborted.
 */
export type AttemptError = 'network' | 'deadline' | 'token' | 'aborted'

/** One attempt of a call: the status of its response, or why there was none. */
export interface AttemptReport {
  /** The status of the response, if there was one. */
  readonly status?: number
  /** The reason why there was no response. */
  readonly error?: AttemptError
  /** Milliseconds waited before this attempt. */
  readonly waitedMs: number
}

/** A report on one call. */
export interface CallReport {
  /** The attempts in order. Empty if the call ended before its first attempt. */
  readonly attempts: readonly AttemptReport[]
  /** Whether the response is a stored one: an earlier attempt, or another call, did the work. */
  readonly replayed: boolean
  /** Milliseconds for the whole call, with all attempts and waits. */
  readonly totalMs: number
  /** The `Idempotency-Key` of the request. */
  readonly idempotencyKey?: string
}

/** Called when a call has ended. Its errors and rejections have no effect. */
export type CallObserver = (report: Omit<CallReport, 'idempotencyKey'>) => unknown

const reports = new WeakMap<Response, CallReport>()

export function withReport(response: Response, report: CallReport): Response {
  reports.set(response, report)
  return response
}

/**
 * Returns the report of the call that returned this response.
 *
 * @throws TypeError for any response that no `serviceFetch` has returned, including clones.
 *
 * @example
 * ```ts
 * import { reportOf, serviceFetch, tokenSource } from 'express-service-auth/client'
 *
 * const url = process.env['CORE_URL'] ?? 'http://127.0.0.1:3567'
 * const core = { baseUrl: url, apiKey: process.env['CORE_API_KEY'] ?? 'local-development-key' }
 * const scheme = { source: 'microservice', token_type: 'service-access' }
 * const claims = { ...scheme, aud: 'orders', sub: 'billing', permissions: ['orders:read'] }
 * const tokens = tokenSource({ core, apiDomain: 'https://api.example.com', claims })
 * const call = serviceFetch(tokens, { origins: [url] })
 *
 * const response = await call(`${url}/hello`)
 * console.log(reportOf(response).attempts.length) // 1
 * ```
 */
export function reportOf(response: Response): CallReport {
  const report = reports.get(response)
  if (report === undefined) throw new TypeError('reportOf: not a response of a serviceFetch')
  return report
}

/** Calls the observer with the report, without the idempotency key. */
export function reportCall(observe: CallObserver | undefined, report: CallReport): void {
  if (observe === undefined) return
  const { attempts, replayed, totalMs } = report
  notify(observe, Object.freeze({ attempts, replayed, totalMs }))
}

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
