import type { Response } from 'express'
import type { DecisionResult } from '../base/decision/decision-event.js'
import type { IdempotencyRefusal } from '../base/decision/idempotency-event.js'
import {
  challenged,
  INVALID_TOKEN,
  type Problem,
  problemType,
  type Refusal,
  refusal,
  type Schemes,
  UNAVAILABLE,
} from '../base/decision/problem.js'
import type { Reason, RefusalReason, UndecidedReason } from '../base/decision/reason.js'
import { wrongWiring } from '../base/decision/service-auth-error.js'
import { keepHeadInOrder } from '../idempotency/buffered-response/head.js'

const NO_TOKEN = challenged(401, 'Unauthorized')
const FORBIDDEN = challenged(403, 'Forbidden', 'insufficient_scope')

const aboutKey = (name: string, title: string): Problem => ({
  type: problemType(name),
  title,
})

/** The response to each reason. Reasons that share a response cannot be told apart by the caller. */
const REFUSALS: Record<RefusalReason, Readonly<Record<Schemes, Refusal<401 | 403>>>> = {
  credentials_missing: NO_TOKEN,
  credentials_ambiguous: INVALID_TOKEN,
  session_token_malformed: INVALID_TOKEN,
  identity_missing: INVALID_TOKEN,
  authorization_repeated: INVALID_TOKEN,
  authorization_malformed: INVALID_TOKEN,
  token_too_long: INVALID_TOKEN,
  token_malformed: INVALID_TOKEN,
  algorithm_not_allowed: INVALID_TOKEN,
  key_id_invalid: INVALID_TOKEN,
  header_parameter_forbidden: INVALID_TOKEN,
  static_key_refused: INVALID_TOKEN,
  token_type_invalid: INVALID_TOKEN,
  id_token: INVALID_TOKEN,
  confirmation_unsupported: INVALID_TOKEN,
  confirmation_missing: INVALID_TOKEN,
  certificate_missing: INVALID_TOKEN,
  certificate_mismatch: INVALID_TOKEN,
  proof_missing: INVALID_TOKEN,
  proof_invalid: INVALID_TOKEN,
  key_denied: INVALID_TOKEN,
  key_unknown: INVALID_TOKEN,
  signature_invalid: INVALID_TOKEN,
  claim_missing: INVALID_TOKEN,
  claim_invalid: INVALID_TOKEN,
  token_expired: INVALID_TOKEN,
  token_not_yet_valid: INVALID_TOKEN,
  token_lifetime_too_long: INVALID_TOKEN,
  token_denied: INVALID_TOKEN,
  token_issued_too_early: INVALID_TOKEN,
  token_id_missing: INVALID_TOKEN,
  token_replayed: INVALID_TOKEN,
  caller_denied: FORBIDDEN,
  caller_not_approved: FORBIDDEN,
  permission_missing: FORBIDDEN,
}

/** The response to each reason other than a refused authentication. */
const PROBLEMS: Record<UndecidedReason, Refusal<503>> &
  Record<IdempotencyRefusal, Refusal<400 | 409 | 422>> = {
  key_not_looked_up: UNAVAILABLE,
  key_set_unavailable: UNAVAILABLE,
  denylist_unavailable: UNAVAILABLE,
  store_unavailable: UNAVAILABLE,
  key_missing: refusal(
    400,
    aboutKey('idempotency-key-missing', 'This operation needs an Idempotency-Key header'),
  ),
  key_invalid: refusal(
    400,
    aboutKey(
      'idempotency-key-invalid',
      'The Idempotency-Key header must be one key of 1 to 255 visible ASCII characters',
    ),
  ),
  key_reused: refusal(
    422,
    aboutKey('idempotency-key-reused', 'This Idempotency-Key was used for another request'),
  ),
  request_in_progress: refusal(
    409,
    aboutKey('request-in-progress', 'The same request is still running'),
  ),
  outcome_unknown: refusal(
    409,
    aboutKey('outcome-unknown', 'The same request was begun before and its outcome is unknown'),
  ),
  result_not_stored: refusal(
    409,
    aboutKey('result-not-stored', 'The same request has been answered and the answer was not kept'),
  ),
}

const isUndecided = (reason: Reason): reason is UndecidedReason => Object.hasOwn(PROBLEMS, reason)

/** The part of a decision's event that follows from its reason. */
export const decisionResult = (reason: Reason): DecisionResult =>
  isUndecided(reason)
    ? { outcome: 'undecided', reason, status: PROBLEMS[reason].status }
    : { outcome: 'refused', reason, status: REFUSALS[reason].Bearer.status }

/** The response to a reason. If it refuses the authentication, it challenges with these schemes. */
export const refusalOf = (reason: Reason, schemes: Schemes): Refusal<401 | 403 | 503> =>
  isUndecided(reason) ? PROBLEMS[reason] : REFUSALS[reason][schemes]

/**
 * Sends the response to a reason other than a refused authentication, and returns its status.
 *
 * @throws ServiceAuthError if a response has begun already.
 */
export function refuse<R extends keyof typeof PROBLEMS>(
  response: Response,
  reason: R,
  retryAfterSeconds?: number,
): (typeof PROBLEMS)[R]['status'] {
  return sendRefusal(response, PROBLEMS[reason], retryAfterSeconds)
}

/**
 * Sends these bytes and headers, and returns their status.
 *
 * @throws ServiceAuthError if a response has begun already.
 */
export function sendRefusal<Status extends number>(
  response: Response,
  { status, headers, body }: Refusal<Status>,
  retryAfterSeconds?: number,
): Status {
  if (response.headersSent)
    throw wrongWiring('a response had begun before the request could be refused')
  response.statusCode = status
  for (const [name, value] of headers) response.setHeader(name, value)
  if (retryAfterSeconds !== undefined) response.setHeader('Retry-After', retryAfterSeconds)
  keepHeadInOrder(response)
  // With `rejectNonStandardBodyWrites`, Node throws if the response to HEAD gets a body.
  // A string, unlike a buffer, is sent in one piece with the head.
  if (response.req.method === 'HEAD') response.end()
  else response.end(body, 'latin1')
  return status
}
