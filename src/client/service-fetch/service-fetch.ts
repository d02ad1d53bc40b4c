import { type Limit, pause, withDeadline } from '../../base/deadline.js'
import type { TokenSource } from '../token-source/token-source.js'
import { isTransient } from '../token-source/token-source-error.js'
import {
  type AttemptReport,
  type CallReport,
  reportCall,
  ServiceCallError,
  type ServiceCallErrorCode,
  withReport,
} from './call-report.js'
import { type OutgoingRequest, outgoingRequest } from './outgoing-request.js'
import {
  cancel,
  decisivePartsOf,
  discard,
  handOver,
  networkError,
  type ReceivedResponse,
  receive,
} from './receive-response.js'
import {
  type AttemptOutcome,
  classifyResponse,
  decideRetry,
  type Failed,
  type RetryContext,
} from './retry-decision.js'
import {
  type FetchSettings,
  fetchSettings,
  type ServiceFetchOptions,
} from './service-fetch-options.js'

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

/** A call in progress. */
interface Call {
  readonly settings: FetchSettings
  readonly request: OutgoingRequest
  /** A time of `performance.now()`, which clock changes do not affect. */
  readonly startedAt: number
  /** The finished attempts. */
  readonly attempts: AttemptReport[]
  /** The wait before the current attempt. */
  waitedMs: number
  hasChangedToken: boolean
}

function startCall(settings: FetchSettings, request: OutgoingRequest): Call {
  const startedAt = performance.now()
  return { settings, request, startedAt, attempts: [], waitedMs: 0, hasChangedToken: false }
}

const leftMs = ({ settings, startedAt }: Call): number =>
  startedAt + settings.deadlineMs - performance.now()

/** The error of a step of the call that ran out of time. */
const DEADLINE_EXCEEDED: Error = new Error('the time is up')
const deadlineExceeded = (): Error => DEADLINE_EXCEEDED

/** The limits of one step of the call. */
const limitOf = ({ request }: Call, timeoutMs: number): Limit => ({
  timeoutMs,
  timeoutError: deadlineExceeded,
  signal: request.signal,
})

function recordAttempt(call: Call, how: Omit<AttemptReport, 'waitedMs'>): void {
  call.attempts.push(Object.freeze({ ...how, waitedMs: call.waitedMs }))
}

function retryContextOf(call: Call): RetryContext {
  const { settings, request } = call
  return {
    isRepeatable: !request.isWrite || request.idempotencyKey !== undefined,
    attempts: call.attempts.length,
    maxAttempts: settings.maxAttempts,
    hasChangedToken: call.hasChangedToken,
    leftMs: leftMs(call),
    random: Math.random(),
  }
}

function reportOn(call: Call, replayed = false): CallReport {
  const { idempotencyKey } = call.request
  return Object.freeze({
    attempts: Object.freeze([...call.attempts]),
    replayed,
    totalMs: performance.now() - call.startedAt,
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  })
}

const callError = (call: Call, code: ServiceCallErrorCode, cause?: unknown): ServiceCallError =>
  new ServiceCallError(code, reportOn(call), cause === undefined ? undefined : { cause })

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

type Attempt =
  | { readonly outcome: AttemptOutcome; readonly answer: ReceivedResponse }
  | { readonly outcome: Failed; readonly answer?: never; readonly cause: unknown }

const VISIBLE_ASCII = /^[\x21-\x7e]+$/

/**
 * Requests a token from the source. Retries within the limits of the call if the failure may pass by itself.
 *
 * @throws ServiceCallError; the reason of the caller's signal.
 */
async function requestToken(call: Call, refused?: string): Promise<string> {
  const { source } = call.settings
  const options = refused === undefined ? undefined : { after: refused }
  for (;;) {
    const given = await askSource(call, 'token', async () => source.token(options))
    if (given.value !== undefined) return given.value
    const { error } = given
    const action = isTransient(error)
      ? decideRetry({ type: 'no_token' }, retryContextOf(call))
      : undefined
    if (action?.type !== 'retry') throw callError(call, 'token', error)
    await pause(action.afterMs, call.request.signal)
    call.waitedMs = action.afterMs
  }
}

/**
 * Requests a proof for this attempt.
 *
 * @throws ServiceCallError; the reason of the caller's signal.
 */
async function requestProof(call: Call, token: string): Promise<string> {
  const { source } = call.settings
  const { method, url } = call.request
  const given = await askSource(call, 'proof', async () => source.proof?.({ method, url, token }))
  if (given.value !== undefined) return given.value
  throw callError(call, 'token', given.error)
}

type Given = { readonly value: string } | { readonly value?: never; readonly error: unknown }

/**
 * Requests the value of a header from the source.
 *
 * @throws ServiceCallError at the deadline; the reason of the caller's signal.
 */
async function askSource(
  call: Call,
  what: 'token' | 'proof',
  ask: () => Promise<unknown>,
): Promise<Given> {
  let error: unknown
  try {
    const value = await withDeadline(limitOf(call, leftMs(call)), ask)
    // For a value that a header cannot hold, the error of `fetch` would repeat the value.
    if (typeof value === 'string' && VISIBLE_ASCII.test(value)) return { value }
    error = new TypeError(`the source returned something that is not a ${what}`)
  } catch (thrown) {
    throwIfAborted(call)
    error = thrown
  }
  const isDeadline = error === DEADLINE_EXCEEDED
  recordAttempt(call, { error: isDeadline ? 'deadline' : 'token' })
  if (isDeadline) throw callError(call, 'deadline', error)
  return { error }
}

/**
 * Sends the request and reads the response.
 *
 * @throws the reason of the caller's signal.
 */
async function sendAttempt(call: Call, token: string): Promise<Attempt> {
  const { settings, request } = call
  const proof = settings.source.proof && (await requestProof(call, token))
  const left = leftMs(call)
  const limit = limitOf(call, Math.min(settings.attemptTimeoutMs, left))
  const exchange = withDeadline(limit, async ({ signal }) => {
    const response = await request.send(token, proof, signal)
    // A `fetch` that ignores its signal resolves too late; nobody reads this response.
    if (signal.aborted && response.body !== null) cancel(response.body)
    signal.throwIfAborted()
    return receive(response, settings.maxResponseBytes)
  })
  try {
    const answer = await exchange
    recordAttempt(call, { status: answer.response.status })
    return { outcome: classifyResponse(decisivePartsOf(answer), Date.now()), answer }
  } catch (error) {
    throwIfAborted(call)
    const isDeadline = error === DEADLINE_EXCEEDED && left <= settings.attemptTimeoutMs
    const type = isDeadline ? 'deadline' : 'network'
    recordAttempt(call, { error: type })
    return { outcome: { type }, cause: error === DEADLINE_EXCEEDED ? error : networkError(error) }
  }
}

function throwIfAborted(call: Call): void {
  const { signal } = call.request
  if (!signal?.aborted) return
  recordAttempt(call, { error: 'aborted' })
  throw signal.reason
}
