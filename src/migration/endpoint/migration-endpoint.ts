import { type NextFunction, type Request, type Response, Router } from 'express'
import { withDeadline } from '../../base/deadline.js'
import { announceMigration, type MigrationDecision } from '../../base/decision/migration-event.js'
import { toServiceAuthError } from '../../base/decision/service-auth-error.js'
import { requestIdOf } from '../../middleware/request-id.js'
import { assertPhonePlans } from '../record-validation/phone-number.js'
import {
  type EndpointSettings,
  type MigrationEndpointOptions,
  parseEndpointOptions,
} from './endpoint-options.js'
import { type EndpointResult, type RequestContext, Undecided } from './endpoint-result.js'
import { judge } from './handle-request.js'
import { reportDependencies } from './report-dependencies.js'
import { answer, REFUSALS } from './send-answer.js'

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
    reportDependencies(result, settings)
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
    timeoutError: () => new Undecided(context.awaited),
    abortWhenSettled: true,
  }
  try {
    return await withDeadline(limit, ({ signal }) => {
      context.signal = signal
      return judge(request, context, settings)
    })
  } catch (error) {
    if (!(error instanceof Undecided)) throw error
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
