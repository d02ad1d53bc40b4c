import type { Response } from 'express'
import type { MigrationRefusal, MigrationUndecided } from '../../base/decision/migration-event.js'
import { blank, type Refusal, refusal, UNAVAILABLE } from '../../base/decision/problem.js'
import { wrongWiring } from '../../base/decision/service-auth-error.js'
import { sendRefusal } from '../../middleware/refusal-table.js'
import type { EndpointResult } from './endpoint-result.js'

const NO_TOKEN = refusal(401, blank('Unauthorized'), [
  'WWW-Authenticate',
  'Bearer realm="migration"',
])
const TOO_MANY = refusal(429, blank('Too Many Requests'))
const NOT_POST = refusal(405, blank('Method Not Allowed'), ['Allow', 'POST'])
const NOT_JSON = refusal(415, blank('Unsupported Media Type'))
const TOO_LARGE = refusal(413, blank('Content Too Large'))
const MALFORMED = refusal(400, blank('Bad Request'))
const FORBIDDEN = refusal(403, blank('Forbidden'))

type RefusedStatus = 400 | 401 | 403 | 405 | 413 | 415 | 429

/** The response for each reason. Reasons with the same status share the same bytes. */
export const REFUSALS: Record<MigrationRefusal, Refusal<RefusedStatus>> &
  Record<MigrationUndecided, Refusal<503>> = {
  credentials_missing: NO_TOKEN,
  authorization_malformed: NO_TOKEN,
  token_unknown: NO_TOKEN,
  credential_limited: TOO_MANY,
  method_not_allowed: NOT_POST,
  media_type_unsupported: NOT_JSON,
  body_too_large: TOO_LARGE,
  body_cut_off: MALFORMED,
  body_malformed: MALFORMED,
  user_limited: TOO_MANY,
  organization_not_allowed: FORBIDDEN,
  connection_not_allowed: FORBIDDEN,
  user_unknown: FORBIDDEN,
  record_differs: FORBIDDEN,
  record_not_allowed: FORBIDDEN,
  record_invalid: FORBIDDEN,
  account_conflict: FORBIDDEN,
  account_foreign: FORBIDDEN,
  tokens_unavailable: UNAVAILABLE,
  limiter_unavailable: UNAVAILABLE,
  body_unfinished: UNAVAILABLE,
  user_unavailable: UNAVAILABLE,
  core_unavailable: UNAVAILABLE,
  outcome_unknown: UNAVAILABLE,
}

/** @throws ServiceAuthError if a response has begun already. */
export function answer(response: Response, result: EndpointResult): void {
  if (result.type === 'accepted') {
    sendOk(response, result.userId)
    return
  }
  const seconds = result.type === 'refused' ? result.retryAfterSeconds : undefined
  sendRefusal(response, REFUSALS[result.reason], seconds)
}

function sendOk(response: Response, userId: string): void {
  if (response.headersSent) throw wrongWiring('a response had begun before the user was migrated')
  const body = Buffer.from(JSON.stringify({ status: 'OK', userId }))
  response.statusCode = 200
  response.setHeader('Content-Type', 'application/json; charset=utf-8')
  response.setHeader('Content-Length', body.byteLength)
  response.setHeader('Cache-Control', 'no-store')
  response.end(body)
}
