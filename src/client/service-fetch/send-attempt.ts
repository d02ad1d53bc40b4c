import { withDeadline } from '../../base/deadline.js'
import { pause } from '../../base/pause.js'
import { isTransient } from '../token-source/token-source-error.js'
import { type AttemptOutcome, classifyResponse, type Failed } from './attempt-outcome.js'
import {
  type Call,
  callError,
  DEADLINE_EXCEEDED,
  leftMs,
  limitOf,
  recordAttempt,
  retryContextOf,
} from './call.js'
import { cancel } from './read-bytes.js'
import {
  decisivePartsOf,
  networkError,
  type ReceivedResponse,
  receive,
} from './receive-response.js'
import { decideRetry } from './retry-decision.js'

type Attempt =
  | { readonly outcome: AttemptOutcome; readonly answer: ReceivedResponse }
  | { readonly outcome: Failed; readonly answer?: never; readonly cause: unknown }

const VISIBLE_ASCII = /^[\x21-\x7e]+$/

/**
 * Requests a token from the source. Retries within the limits of the call if the failure may pass by itself.
 *
 * @throws ServiceCallError; the reason of the caller's signal.
 */
export async function requestToken(call: Call, refused?: string): Promise<string> {
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
export async function sendAttempt(call: Call, token: string): Promise<Attempt> {
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
