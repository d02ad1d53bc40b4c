import { type Request, type RequestHandler, type Response, Router } from 'express'
import { withDeadline } from '../../base/deadline.js'
import { dependencyOf } from '../../base/decision/dependency.js'
import {
  announceMigration,
  isMigrationObserved,
  type MigrationDecision,
  type MigrationRefusal,
  type MigrationUndecided,
} from '../../base/decision/migration-event.js'
import { blank, type Refusal, refusal, UNAVAILABLE } from '../../base/decision/problem.js'
import { toServiceAuthError } from '../../base/decision/service-auth-error.js'
import { sendRefusal } from '../../middleware/refusal-table.js'
import { requestIdOf } from '../../middleware/request-id.js'
import { assertPhonePlans } from '../record-validation/normalise.js'
import {
  type EndpointSettings,
  type MigrationEndpointOptions,
  parseEndpointOptions,
} from './endpoint-options.js'
import { type Accepted, judge, type RequestContext } from './judge-request.js'
import { RequestEnded } from './request-ended.js'

/**
 * Creates the endpoint that a login-time hook of the legacy provider calls, so that a user who signs in
 * there gets an account in the core (the specification's application-owned migration endpoint). It accepts
 * `POST` at its mount path and reads the body itself, so no body parser may precede it.
 *
 * @returns an Express `Router`.
 * @throws TypeError if an option is missing, unknown, of the wrong type or out of range.
 * @throws Error if the installed google-libphonenumber has other numbering plans than the core.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { coreClient, migrationEndpoint } from 'express-service-auth/migration'
 *
 * const core = coreClient({
 *   baseUrl: process.env['CORE_URL'] ?? 'http://127.0.0.1:3567',
 *   apiKey: process.env['CORE_API_KEY'] ?? 'local-development-key',
 * })
 * const unlimited = { consume: async () => {} }
 * const endpoint = migrationEndpoint({
 *   core,
 *   issuers: {
 *     legacy: {
 *       tokens: ['0123456789abcdef0123456789abcdef'],
 *       withoutOrganization: ['public'],
 *       connections: [
 *         { provider: 'auth0', connection: 'Users', as: { recipeId: 'emailpassword' } },
 *       ],
 *     },
 *   },
 *   loadUser: async () => undefined, // From your own store of users.
 *   limits: { credential: unlimited, user: unlimited },
 * })
 * const app = express().use('/migrate-user', endpoint)
 * ```
 */
export function migrationEndpoint(options: MigrationEndpointOptions): Router {
  assertPhonePlans()
  const settings = parseEndpointOptions(options)
  const router = Router()
  router.all('/', handlerWith(settings))
  return router
}

/** The handler never rejects. A closed connection ends nothing: the work continues. */
const handlerWith =
  (settings: EndpointSettings): RequestHandler =>
  async (request, response, next) => {
    const control = new AbortController()
    const { signal } = control
    const context: RequestContext = { settings, signal, awaited: 'tokens_unavailable' }
    const limit = {
      timeoutMs: settings.timeoutMs,
      timeoutError: () => new RequestEnded(context.awaited),
    }
    try {
      const end = await withDeadline(limit, judge(request, context)).catch(returnIfEnded)
      if (end instanceof RequestEnded) {
        sendRefusal(response, responseTo(end.reason), end.details.retryAfterSeconds)
      } else sendOk(response, end.userId)
      announceMigration(settings.onDecision, () => decisionOf(end, context, request))
      if (end instanceof RequestEnded) reportFailure(end, settings)
    } catch (error) {
      next(toServiceAuthError('migrationEndpoint', error))
    } finally {
      control.abort()
    }
  }

function returnIfEnded(error: unknown): RequestEnded {
  if (error instanceof RequestEnded) return error
  throw error
}

function sendOk(response: Response, userId: string): void {
  const body = Buffer.from(JSON.stringify({ status: 'OK', userId }))
  response.statusCode = 200
  response.setHeader('Content-Type', 'application/json; charset=utf-8')
  response.setHeader('Content-Length', body.byteLength)
  response.setHeader('Cache-Control', 'no-store')
  response.end(body)
}

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

const REFUSALS: Readonly<
  Record<MigrationRefusal, Refusal<400 | 401 | 403 | 405 | 413 | 415 | 429>>
> = {
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
}

/** What has failed, by the reason of a 503. If the body does not arrive, the caller was too slow. */
const FAILURES = {
  tokens_unavailable: { kind: 'tokens', option: 'issuers', name: 'the function tokens' },
  limiter_unavailable: { kind: 'limiter', option: 'limits', name: 'a limiter' },
  body_unfinished: undefined,
  user_unavailable: { kind: 'users', option: 'loadUser', name: 'loadUser' },
  core_unavailable: { kind: 'core', option: 'core', name: 'the core' },
  outcome_unknown: { kind: 'core', option: 'core', name: 'the core' },
} as const satisfies Record<MigrationUndecided, object | undefined>

const isRefusal = (reason: RequestEnded['reason']): reason is MigrationRefusal => reason in REFUSALS

/** Returns the response to a reason. Reasons with the same status share the same bytes. */
const responseTo = (reason: RequestEnded['reason']) =>
  isRefusal(reason) ? REFUSALS[reason] : UNAVAILABLE

function decisionOf(
  end: Accepted | RequestEnded,
  { issuer, externalUserId }: RequestContext,
  request: Request,
): MigrationDecision {
  const requestId = requestIdOf(request)
  const context = {
    by: 'migrationEndpoint',
    ...(issuer !== undefined && { issuer }),
    ...(externalUserId !== undefined && { externalUserId }),
    ...(requestId !== undefined && { requestId }),
  } as const
  if (!(end instanceof RequestEnded)) {
    return { ...context, outcome: 'accepted', reason: end.reason, status: 200 }
  }
  const { reason } = end
  const { faults } = end.details
  const refused = { ...context, ...(faults !== undefined && { faults }) }
  return isRefusal(reason)
    ? { ...refused, outcome: 'refused', reason, status: REFUSALS[reason].status }
    : { ...refused, outcome: 'undecided', reason, status: 503 }
}

/** Reports which dependency has failed, if one has. */
function reportFailure({ reason, details }: RequestEnded, settings: EndpointSettings): void {
  const failed = isRefusal(reason) ? undefined : FAILURES[reason]
  if (failed === undefined) return
  const { kind, option, name } = failed
  const [code = 'no reply in time'] = details.faults ?? []
  const why = kind === 'core' ? ` (reason: ${code})` : ''
  dependencyOf(kind, settings[option]).failed({
    message: `${name} of migrationEndpoint failed${why}`,
    isObserved: isMigrationObserved(settings.onDecision),
  })
}
