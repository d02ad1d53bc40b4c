import { type NextFunction, type Request, type Response, Router } from 'express'
import { withDeadline } from '../../base/deadline.js'
import { type DependencyFailure, dependencyOf } from '../../base/decision/dependency.js'
import {
  announceMigration,
  isMigrationObserved,
  type MigrationDecision,
  type MigrationRefusal,
  type MigrationUndecided,
} from '../../base/decision/migration-event.js'
import { blank, type Refusal, refusal, UNAVAILABLE } from '../../base/decision/problem.js'
import { toServiceAuthError, wrongWiring } from '../../base/decision/service-auth-error.js'
import { sendRefusal } from '../../middleware/refusal-table.js'
import { requestIdOf } from '../../middleware/request-id.js'
import { assertPhonePlans } from '../record-validation/phone-number.js'
import {
  type EndpointSettings,
  type MigrationEndpointOptions,
  parseEndpointOptions,
} from './endpoint-options.js'
import {
  type EndpointResult,
  type RequestContext,
  RequestEnded,
  undecided,
} from './endpoint-result.js'
import { judge } from './handle-request.js'

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
  router.all('/', (request, response, next) => {
    void serve({ request, response, next }, settings)
  })
  return router
}

interface Exchange {
  readonly request: Request
  readonly response: Response
  readonly next: NextFunction
}

/** Never rejects. */
async function serve(
  { request, response, next }: Exchange,
  settings: EndpointSettings,
): Promise<void> {
  const context: RequestContext = { signal: NEVER, awaited: 'tokens_unavailable' }
  try {
    const result = await judgeInTime(request, context, settings)
    answer(response, result)
    announceMigration(settings.onDecision, () => decisionOf(result, context, request))
    reportDependency(result, settings)
  } catch (error) {
    next(toServiceAuthError('migrationEndpoint', error))
  }
}

/** The signal until the deadline's signal replaces it. A closed connection aborts neither: the work continues. */
const NEVER = new AbortController().signal

async function judgeInTime(
  request: Request,
  context: RequestContext,
  settings: EndpointSettings,
): Promise<EndpointResult> {
  const limit = {
    timeoutMs: settings.timeoutMs,
    timeoutError: () => undecided(context.awaited),
    abortWhenSettled: true,
  }
  try {
    return await withDeadline(limit, ({ signal }) => {
      context.signal = signal
      return judge(request, context, settings)
    })
  } catch (error) {
    if (!(error instanceof RequestEnded)) throw error
    return error.result
  }
}

function decisionOf(
  result: EndpointResult,
  context: RequestContext,
  request: Request,
): MigrationDecision {
  const { issuer, externalUserId } = context
  const requestId = requestIdOf(request)
  const faults = result.type === 'accepted' ? undefined : result.faults
  const about = {
    by: 'migrationEndpoint',
    ...(issuer !== undefined && { issuer }),
    ...(externalUserId !== undefined && { externalUserId }),
    ...(faults !== undefined && { faults }),
    ...(requestId !== undefined && { requestId }),
  } as const
  switch (result.type) {
    case 'accepted':
      return { outcome: 'accepted', reason: result.reason, status: 200, ...about }
    case 'refused':
      return {
        outcome: 'refused',
        reason: result.reason,
        status: REFUSALS[result.reason].status,
        ...about,
      }
    case 'undecided':
      return { outcome: 'undecided', reason: result.reason, status: 503, ...about }
  }
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

type RefusedStatus = 400 | 401 | 403 | 405 | 413 | 415 | 429

/** The response for each reason. Reasons with the same status share the same bytes. */
const REFUSALS: Record<MigrationRefusal, Refusal<RefusedStatus>> &
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
function answer(response: Response, result: EndpointResult): void {
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

/** Reports which dependency has failed, if one has. */
function reportDependency(result: EndpointResult, settings: EndpointSettings): void {
  if (result.type !== 'undecided') return
  const { reason, faults = ['no reply in time'] } = result
  // The caller was too slow.
  if (reason === 'body_unfinished') return
  const { core, issuers, limits, loadUser, onDecision } = settings
  const coreFailed = {
    dependency: dependencyOf('core', core),
    message: `the core of migrationEndpoint failed (reason: ${faults[0]})`,
  }
  const failures: Record<typeof reason, DependencyFailure> = {
    tokens_unavailable: {
      dependency: dependencyOf('tokens', issuers),
      message: 'the function tokens of migrationEndpoint failed',
    },
    limiter_unavailable: {
      dependency: dependencyOf('limiter', limits),
      message: 'a limiter of migrationEndpoint failed',
    },
    user_unavailable: {
      dependency: dependencyOf('users', loadUser),
      message: 'loadUser of migrationEndpoint failed',
    },
    core_unavailable: coreFailed,
    outcome_unknown: coreFailed,
  }
  const { dependency, message } = failures[reason]
  dependency.failed({ message, isObserved: isMigrationObserved(onDecision) })
}
