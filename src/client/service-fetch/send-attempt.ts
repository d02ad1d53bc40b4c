import { withDeadline } from '../../base/deadline.js'
import { pause } from '../../base/pause.js'
import { maySubside } from '../token-source/token-source-error.js'
import { type Failed, type Outcome, outcomeOf } from './attempt-outcome.js'
import {
  type Call,
  DEADLINE_EXCEEDED,
  failureOf,
  leftMs,
  limitOf,
  noteAttempt,
  standingOf,
} from './call.js'
import { lostAnswer } from './network-error.js'
import { cancel } from './read-bytes.js'
import { type Answer, judgedOf, receive } from './receive-response.js'
import { nextStep } from './retry-decision.js'

export type Attempt =
  | { readonly outcome: Outcome; readonly answer: Answer }
  | { readonly outcome: Failed; readonly answer?: never; readonly cause: unknown }

const VISIBLE_ASCII = /^[\x21-\x7e]+$/

/**
 * Requests a token from the source. Retries within the limits of the call if the failure may pass by
 * itself.
 *
 * @throws ServiceCallError; the reason of the caller's signal.
 */
export async function askForToken(call: Call, refused?: string): Promise<string> {
  for (;;) {
    const asked = await askOnce(call, refused)
    if (asked.token !== undefined) return asked.token
    const { error } = asked
    const step = maySubside(error) ? nextStep({ type: 'no_token' }, standingOf(call)) : undefined
    if (step?.type !== 'again') throw failureOf(call, 'token', error)
    await pause(step.afterMs, call.request.signal)
    call.waitedMs = step.afterMs
  }
}

type AskedToken = { readonly token: string } | { readonly token?: never; readonly error: unknown }

async function askOnce(call: Call, refused: string | undefined): Promise<AskedToken> {
  const { plan } = call
  let failure: unknown = new TypeError('the source gave something that is no token')
  try {
    const options = refused === undefined ? undefined : { after: refused }
    const token: unknown = await withDeadline(limitOf(call, leftMs(call)), async () =>
      plan.source.token(options),
    )
    // The error of `fetch` would repeat a value that a header cannot hold.
    if (typeof token === 'string' && VISIBLE_ASCII.test(token)) return { token }
  } catch (error) {
    throwIfAborted(call)
    failure = error
  }
  const isDeadline = failure === DEADLINE_EXCEEDED
  noteAttempt(call, { error: isDeadline ? 'deadline' : 'token' })
  if (isDeadline) throw failureOf(call, 'deadline', failure)
  return { error: failure }
}

/**
 * Sends the request and reads the response.
 *
 * @throws the reason of the caller's signal.
 */
export async function send(call: Call, token: string): Promise<Attempt> {
  const { plan, request } = call
  const left = leftMs(call)
  const limit = limitOf(call, Math.min(plan.attemptTimeoutMs, left))
  const exchange = withDeadline(limit, async ({ signal: ended }) => {
    const response = await request.send(token, ended)
    // A `fetch` that ignores signals: this response is no longer needed.
    if (ended.aborted && response.body !== null) cancel(response.body)
    ended.throwIfAborted()
    return receive(response, plan.maxResponseBytes)
  })
  try {
    const answer = await exchange
    noteAttempt(call, { status: answer.response.status })
    return { outcome: outcomeOf(judgedOf(answer), Date.now()), answer }
  } catch (error) {
    throwIfAborted(call)
    const isDeadline = error === DEADLINE_EXCEEDED && left <= plan.attemptTimeoutMs
    const type = isDeadline ? 'deadline' : 'network'
    noteAttempt(call, { error: type })
    return { outcome: { type }, cause: error === DEADLINE_EXCEEDED ? error : lostAnswer(error) }
  }
}

function throwIfAborted(call: Call): void {
  const { signal } = call.request
  if (!signal?.aborted) return
  noteAttempt(call, { error: 'aborted' })
  throw signal.reason
}
