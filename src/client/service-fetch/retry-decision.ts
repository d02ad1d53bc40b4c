import { growingDelayMs } from '../../base/back-off.js'
import { INVALID_TOKEN, PROBLEM_MEDIA_TYPE, problemType } from '../../base/decision/problem.js'
import { retryAfterMs } from '../../base/fetch.js'
import { parseJson } from '../../base/json.js'
import { isObject } from '../../base/options.js'

/** The outcome of an attempt, as far as it matters for the retry decision. */
export type AttemptOutcome =
  /** A stored result, which a retry would return again. */
  | { readonly type: 'replayed' }
  /** `isFromServiceAuth`: byte for byte the response that `serviceAuth` sends before any handler runs. */
  | { readonly type: 'token_refused'; readonly isFromServiceAuth: boolean }
  /** `retryAfterMs` is absent if a gateway answers and does not say when to retry. */
  | { readonly type: 'unavailable'; readonly retryAfterMs: number | undefined }
  | { readonly type: 'in_progress'; readonly retryAfterMs: number }
  | { readonly type: 'answered' }
  /** There was no token, for a reason that may pass by itself. Nothing was sent. */
  | { readonly type: 'no_token' }
  | Failed

export type Failed =
  /** There was no response, or an incomplete one. */
  | { readonly type: 'network' }
  /** The deadline of the whole call passed. */
  | { readonly type: 'deadline' }

/** The parts of a response that decide the outcome. */
export interface ClassifiedResponse {
  readonly status: number
  readonly headers: Headers
  /** `undefined` if the body is streamed. */
  readonly body: Uint8Array | undefined
}

/** `now` is in ms since the epoch. */
export function classifyResponse(answer: ClassifiedResponse, now: number): AttemptOutcome {
  const { status, headers } = answer
  if (headers.has('idempotent-replayed')) return { type: 'replayed' }
  if (status === 401 && refusesToken(headers)) {
    return { type: 'token_refused', isFromServiceAuth: isServiceAuthRefusal(answer) }
  }
  const waitMs = retryAfterMs(headers, now)
  if (UNAVAILABLE.has(status)) return { type: 'unavailable', retryAfterMs: waitMs }
  if (status !== 409 || waitMs === undefined || !isInProgress(answer)) return { type: 'answered' }
  return { type: 'in_progress', retryAfterMs: waitMs }
}

const UNAVAILABLE = new Set([502, 503, 504])

/** RFC 6750, section 3.1. */
const REFUSES_TOKEN = /(?:^|[\s,])error="invalid_token"(?=$|[\s,])/i

/** The schemes of service tokens. A gateway may rename or drop the challenge of the service behind it. */
const CHALLENGES = /(?:^|[\s,])(?:Bearer|DPoP)(?=$|[\s,])/i

function refusesToken(headers: Headers): boolean {
  const challenge = headers.get('www-authenticate') ?? ''
  return REFUSES_TOKEN.test(challenge) || !CHALLENGES.test(challenge)
}

function isServiceAuthRefusal({ headers, body }: ClassifiedResponse): boolean {
  if (body === undefined || headers.has('content-encoding')) return false
  return Object.values(INVALID_TOKEN).some((refusal) => {
    // `Content-Length` may be absent, and the body itself is compared.
    const expected = refusal.headers.filter(([name]) => name !== 'Content-Length')
    return (
      expected.every(([name, value]) => headers.get(name) === value) &&
      Buffer.from(refusal.body).equals(body)
    )
  })
}

const IN_PROGRESS = problemType('request-in-progress')

function isInProgress({ headers, body }: ClassifiedResponse): boolean {
  const [mediaType = ''] = (headers.get('content-type') ?? '').split(';', 1)
  if (mediaType.trim().toLowerCase() !== PROBLEM_MEDIA_TYPE) return false
  const problem = parseJson(new TextDecoder().decode(body))
  return isObject(problem) && problem['type'] === IN_PROGRESS
}

/** The action after an attempt. */
export type RetryAction =
  /** Returns the response, or throws the failure. */
  | { readonly type: 'end' }
  /** Repeats immediately, with a token other than the refused one. */
  | { readonly type: 'another_token' }
  | { readonly type: 'retry'; readonly afterMs: number }

/** The state of the call after an attempt. */
export interface RetryContext {
  /** A read, or a write with an idempotency key: a repeated request has no further effect. */
  readonly isRepeatable: boolean
  /** Includes the attempt that has just ended. */
  readonly attempts: number
  readonly maxAttempts: number
  /** Whether the call has already replaced a refused token. */
  readonly hasChangedToken: boolean
  /** Milliseconds until the deadline. */
  readonly leftMs: number
  /** At least 0 and less than 1. */
  readonly random: number
}

const END: RetryAction = { type: 'end' }

/**
 * Decides whether to repeat a call: only if a repeat is safe and may have another outcome. Never waits
 * beyond the deadline.
 */
export function decideRetry(outcome: AttemptOutcome, context: RetryContext): RetryAction {
  const action = desiredAction(outcome, context)
  const afterMs = action.type === 'retry' ? action.afterMs : 0
  const isLast = context.attempts >= context.maxAttempts || afterMs >= context.leftMs
  return isLast ? END : action
}

function desiredAction(outcome: AttemptOutcome, context: RetryContext): RetryAction {
  const { isRepeatable } = context
  switch (outcome.type) {
    case 'token_refused': {
      const isSafeToRepeat = isRepeatable || outcome.isFromServiceAuth
      return isSafeToRepeat && !context.hasChangedToken ? { type: 'another_token' } : END
    }
    case 'in_progress':
      return isRepeatable ? { type: 'retry', afterMs: outcome.retryAfterMs } : END
    case 'unavailable': {
      const { retryAfterMs: afterMs = networkDelayMs(context) } = outcome
      return isRepeatable ? { type: 'retry', afterMs } : END
    }
    case 'network':
      return isRepeatable ? { type: 'retry', afterMs: networkDelayMs(context) } : END
    // Nothing was sent, so a write without a key can be repeated as well.
    case 'no_token':
      return { type: 'retry', afterMs: tokenDelayMs(context) }
    case 'replayed':
    case 'answered':
    case 'deadline':
      return END
  }
}

const NETWORK_DELAY = { firstMs: 100, maxMs: 5000 }

const networkDelayMs = ({ attempts, random }: RetryContext): number =>
  growingDelayMs(attempts, NETWORK_DELAY, random)

/** The factor between one wait for a token and the next. */
const TOKEN_DELAY_GROWTH = 2.5

/**
 * Spreads the waits of the remaining attempts over most of the remaining time, because a core takes
 * seconds to restart. By default they are about 2, 5 and 10 s.
 */
function tokenDelayMs({ attempts, maxAttempts, leftMs, random }: RetryContext): number {
  const shortestMs = leftMs / TOKEN_DELAY_GROWTH ** (maxAttempts - attempts)
  return Math.round(shortestMs * (1 + random / 4))
}
