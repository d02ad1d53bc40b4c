import type { Response } from 'express'
import type { IdempotencyRefusal } from '../idempotency/event.js'

const TYPE_PREFIX = 'urn:express-service-auth:'

const PROBLEMS: Record<
  IdempotencyRefusal,
  { readonly status: 400 | 409 | 422; readonly type: string; readonly title: string }
> = {
  key_missing: {
    status: 400,
    type: 'idempotency-key-missing',
    title: 'This operation needs an Idempotency-Key header',
  },
  key_invalid: {
    status: 400,
    type: 'idempotency-key-invalid',
    title: 'The Idempotency-Key header must be one key of 1 to 255 visible ASCII characters',
  },
  key_reused: {
    status: 422,
    type: 'idempotency-key-reused',
    title: 'This Idempotency-Key was used for another request',
  },
  request_in_progress: {
    status: 409,
    type: 'request-in-progress',
    title: 'The same request is still running',
  },
  outcome_unknown: {
    status: 409,
    type: 'outcome-unknown',
    title: 'The same request was begun before and its outcome is unknown',
  },
  result_not_stored: {
    status: 409,
    type: 'result-not-stored',
    title: 'The same request has been answered and the answer was not kept',
  },
}

/** Sends the problem (RFC 9457) and returns its status. */
export function sendProblem(
  response: Response,
  refusal: IdempotencyRefusal,
  retryAfterSeconds?: number,
): 400 | 409 | 422 {
  const { status, type, title } = PROBLEMS[refusal]
  const body = Buffer.from(JSON.stringify({ type: `${TYPE_PREFIX}${type}`, title, status }))
  response.statusCode = status
  response.setHeader('Content-Type', 'application/problem+json')
  response.setHeader('Content-Length', body.byteLength)
  response.setHeader('Cache-Control', 'no-store')
  if (retryAfterSeconds !== undefined) response.setHeader('Retry-After', retryAfterSeconds)
  response.end(body)
  return status
}
