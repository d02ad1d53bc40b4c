import { type NextFunction, type Request, type Response, Router } from 'express'
import { withDeadline } from '../../base/deadline.js'
import { toServiceAuthError } from '../../base/decision/service-auth-error.js'
import { requestIdOf } from '../../middleware/request-id.js'
import { announceMigrationDecision, type MigrationDecision } from './decision.js'
import {
  type MigrationEndpointOptions,
  type ParsedEndpointOptions,
  parseEndpointOptions,
} from './endpoint-options.js'
import { REFUSALS } from './endpoint-refusals.js'
import { Undecided, type Verdict } from './endpoint-result.js'
import { judge } from './handle-request.js'
import type { Course } from './request-context.js'
import { answer } from './send-answer.js'

/**
 * Creates the endpoint that a login-time hook of the legacy provider calls, so that a user who signs in
 * there gets an account in the core (the specification's application-owned migration endpoint). It accepts
 * `POST` at its mount path and reads the body itself, so no body parser may precede it.
 *
 * @returns an Express `Router`.
 * @throws TypeError if an option is missing, unknown, of the wrong type or out of range.
 */
export function migrationEndpoint(options: MigrationEndpointOptions): Router {
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
  settings: ParsedEndpointOptions,
): Promise<void> {
  const course: Course = { signal: NEVER, awaited: 'tokens_unavailable' }
  try {
    const verdict = await judgeInTime(request, course, settings)
    answer(response, verdict)
    announceMigrationDecision(settings.onDecision, () => decisionOf(verdict, course, request))
  } catch (error) {
    next(toServiceAuthError('migrationEndpoint', error))
  }
}

/** Never aborts: a closed connection does not stop the work. */
const NEVER = new AbortController().signal

async function judgeInTime(
  request: Request,
  course: Course,
  settings: ParsedEndpointOptions,
): Promise<Verdict> {
  const limit = {
    timeoutMs: settings.timeoutMs,
    timeoutError: () => new Undecided(course.awaited),
    abortWhenSettled: true,
  }
  try {
    return await withDeadline(limit, ({ signal }) => {
      course.signal = signal
      return judge(request, course, settings)
    })
  } catch (error) {
    if (!(error instanceof Undecided)) throw error
    return course.verdict ?? error.verdict
  }
}

function decisionOf(verdict: Verdict, course: Course, request: Request): MigrationDecision {
  const { issuer, externalUserId } = course
  const requestId = requestIdOf(request)
  const faults = verdict.type === 'accepted' ? undefined : verdict.faults
  const context = {
    by: 'migrationEndpoint',
    ...(issuer !== undefined && { issuer }),
    ...(externalUserId !== undefined && { externalUserId }),
    ...(faults !== undefined && { faults }),
    ...(requestId !== undefined && { requestId }),
  } as const
  switch (verdict.type) {
    case 'accepted':
      return { outcome: 'accepted', reason: verdict.reason, status: 200, ...context }
    case 'refused':
      return {
        outcome: 'refused',
        reason: verdict.reason,
        status: REFUSALS[verdict.reason].status,
        ...context,
      }
    case 'undecided':
      return { outcome: 'undecided', reason: verdict.reason, status: 503, ...context }
  }
}
