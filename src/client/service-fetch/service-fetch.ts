import { withDeadline } from '../../base/deadline.js'
import { pause } from '../../base/pause.js'
import type { TokenSource } from '../token-source/token-source-interface.js'
import {
  type Call,
  callError,
  DEADLINE_EXCEEDED,
  leftMs,
  limitOf,
  reportOn,
  retryContextOf,
  startCall,
} from './call.js'
import { reportCall, withReport } from './call-report.js'
import { outgoingRequest } from './outgoing-request.js'
import { discard, handOver, type ReceivedResponse } from './receive-response.js'
import { decideRetry } from './retry-decision.js'
import { requestToken, sendAttempt } from './send-attempt.js'
import { ServiceCallError } from './service-call-error.js'
import { fetchSettings, type ServiceFetchOptions } from './service-fetch-options.js'

/**
 * Creates a `fetch` that adds the service token, with a new proof if the source has `proof`, and repeats calls if
 * that is safe: reads (GET, HEAD, OPTIONS), and writes with an `Idempotency-Key`. Redirects are returned, not
 * followed. Response bodies up to `maxResponseBytes` are read before the response is returned; larger ones and
 * `text/event-stream` are streamed.
 *
 * Calls reject with a TypeError for a request that must not be sent, with a `ServiceCallError` if there
 * is no response, and with the reason of their signal if it aborts.
 *
 * @throws TypeError that names every invalid option.
 *
 * @example
 * ```ts
 * import { serviceFetch, tokenSource } from 'express-service-auth/client'
 *
 * const url = process.env['CORE_URL'] ?? 'http://127.0.0.1:3567'
 * const core = { baseUrl: url, apiKey: process.env['CORE_API_KEY'] ?? 'local-development-key' }
 * const scheme = { source: 'microservice', token_type: 'service-access' }
 * const claims = { ...scheme, aud: 'orders', sub: 'billing', permissions: ['orders:write'] }
 * const tokens = tokenSource({ core, apiDomain: 'https://api.example.com', claims })
 *
 * const call = serviceFetch(tokens, { origins: [url], deadlineMs: 10_000 })
 * const headers = { 'idempotency-key': 'invoice-4711' } // With a key, a write may be retried.
 * const response = await call(`${url}/orders`, { method: 'POST', headers, body: 'tea' })
 * console.log(response.ok) // false
 * ```
 */
export function serviceFetch(
  source: Pick<TokenSource, 'token' | 'proof'>,
  options: ServiceFetchOptions,
): typeof globalThis.fetch {
  const settings = fetchSettings(source, options)
  return async (input, init) => {
    const call = startCall(settings, outgoingRequest(settings, input, init))
    try {
      await readBody(call)
      return deliver(call, await repeat(call))
    } catch (error) {
      if (error instanceof ServiceCallError) reportCall(settings.onCall, error.report)
      else if (call.request.signal?.aborted) reportCall(settings.onCall, reportOn(call))
      throw error
    }
  }
}

async function readBody(call: Call): Promise<void> {
  const { request } = call
  request.signal?.throwIfAborted()
  if (!request.hasBody) return
  try {
    await withDeadline(limitOf(call, leftMs(call)), request.readBody)
  } catch (error) {
    request.abandonBody()
    throw error === DEADLINE_EXCEEDED ? callError(call, 'deadline') : error
  }
}

async function repeat(call: Call): Promise<ReceivedResponse> {
  let token = await requestToken(call)
  for (;;) {
    const attempt = await sendAttempt(call, token)
    const { answer } = attempt
    const action = decideRetry(attempt.outcome, retryContextOf(call))
    if (action.type === 'end') {
      if (answer !== undefined) return answer
      throw callError(call, attempt.outcome.type, attempt.cause)
    }
    call.waitedMs = 0
    if (action.type === 'retry') {
      if (answer !== undefined) discard(answer)
      await pause(action.afterMs, call.request.signal)
      call.waitedMs = action.afterMs
      token = await requestToken(call)
    } else if (answer !== undefined) {
      // The receiver has refused the token. If the source has no other, the caller gets this refusal.
      const another = await requestToken(call, token).catch((error: unknown) => {
        discard(answer)
        throw error
      })
      if (another === token) return answer
      discard(answer)
      call.hasChangedToken = true
      token = another
    }
  }
}

const REDIRECTS = new Set([301, 302, 303, 307, 308])

function deliver(call: Call, answer: ReceivedResponse): Response {
  if (call.request.refusesRedirects && REDIRECTS.has(answer.response.status)) {
    discard(answer)
    throw callError(call, 'network', new TypeError("the answer is a redirect: redirect is 'error'"))
  }
  const report = reportOn(call, answer.response.headers.has('idempotent-replayed'))
  reportCall(call.settings.onCall, report)
  return withReport(handOver(answer, call.request.signal), report)
}
