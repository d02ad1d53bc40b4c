import type { Response } from 'express'
import type { Verdict } from '../decision/event.js'
import { wrongWiring } from '../decision/fault.js'
import type { Reason, RefusalReason, UndecidedReason } from '../decision/reason.js'

interface Refusal<Status extends number> {
  readonly status: Status
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
}

function refusal<const Status extends number>(
  status: Status,
  title: string,
  header: readonly [string, string],
): Refusal<Status> {
  const body = JSON.stringify({ type: 'about:blank', title, status })
  return {
    status,
    body,
    headers: [
      ['Content-Type', 'application/problem+json'],
      ['Content-Length', String(Buffer.byteLength(body))],
      ['Cache-Control', 'no-store'],
      header,
    ],
  }
}

/** RFC 6750, section 3; RFC 9457. */
const challenge = (parameter: string): readonly [string, string] => [
  'WWW-Authenticate',
  `Bearer realm="service"${parameter}`,
]
const NO_TOKEN = refusal(401, 'Unauthorized', challenge(''))
const INVALID_TOKEN = refusal(401, 'Unauthorized', challenge(', error="invalid_token"'))
const FORBIDDEN = refusal(403, 'Forbidden', challenge(', error="insufficient_scope"'))
const UNAVAILABLE = refusal(503, 'Service Unavailable', ['Retry-After', '5'])

/** What a caller sees of each reason: nothing but which of the four it is. */
const REFUSALS: Record<RefusalReason, Refusal<401 | 403>> = {
  credentials_missing: NO_TOKEN,
  authorization_repeated: INVALID_TOKEN,
  authorization_malformed: INVALID_TOKEN,
  token_too_long: INVALID_TOKEN,
  token_malformed: INVALID_TOKEN,
  algorithm_not_allowed: INVALID_TOKEN,
  key_id_invalid: INVALID_TOKEN,
  header_parameter_forbidden: INVALID_TOKEN,
  static_key_refused: INVALID_TOKEN,
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

const UNDECIDED: Record<UndecidedReason, Refusal<503>> = {
  key_set_unavailable: UNAVAILABLE,
  store_unavailable: UNAVAILABLE,
}

const isUndecided = (reason: Reason): reason is UndecidedReason => Object.hasOwn(UNDECIDED, reason)

/** The part of a decision's event that follows from its reason. */
export const verdictOf = (reason: Reason): Verdict =>
  isUndecided(reason)
    ? { outcome: 'undecided', reason, status: UNDECIDED[reason].status }
    : { outcome: 'refused', reason, status: REFUSALS[reason].status }

/**
 * Sends the refusal: the same bytes and headers for all reasons of one row.
 *
 * @throws ServiceAuthError when a response has begun already.
 */
export function refuse(response: Response, reason: Reason): void {
  if (response.headersSent) throw wrongWiring('a response had begun before the request was judged')
  const { status, headers, body } = isUndecided(reason) ? UNDECIDED[reason] : REFUSALS[reason]
  response.statusCode = status
  for (const [name, value] of headers) response.setHeader(name, value)
  response.end(body)
}
