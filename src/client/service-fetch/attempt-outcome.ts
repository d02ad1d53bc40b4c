import { INVALID_TOKEN, PROBLEM_MEDIA_TYPE, problemType } from '../../base/decision/problem.js'
import { parseJson } from '../../base/json.js'
import { isObject } from '../../base/options.js'
import { retryAfterMs } from '../../base/retry-after.js'

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
