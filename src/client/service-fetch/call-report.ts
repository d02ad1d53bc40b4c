import { notify } from '../../base/decision/observers.js'

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
