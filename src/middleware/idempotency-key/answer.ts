import type { NextFunction, Request, Response } from 'express'
import { announceDecision, isObserved } from '../../base/decision/decision-event.js'
import type { IdempotencyEvent, IdempotencyRefusal } from '../../base/decision/idempotency-event.js'
import type { Denial } from '../../base/decision/reason.js'
import { ServiceAuthError, Unavailable } from '../../base/decision/service-auth-error.js'
import { keepHeadInOrder } from '../../idempotency/buffered-response/head.js'
import {
  decodeResult,
  isBodyless,
  type StoredResult,
} from '../../idempotency/buffered-response/stored-result.js'
import type { Finding } from '../../idempotency/run.js'
import { consume, type TokenUse } from '../../idempotency/single-use.js'
import { eventOf, reportFailure, undecided } from '../guard.js'
import { refusalOf, refuse, sendRefusal } from '../refusal-table.js'
import { requestIdOf } from '../request-id.js'
import type { AdmittedState } from '../request-state.js'
import { tokenReplayed } from '../require-single-use.js'
import type { IdempotencySettings } from './idempotency-options.js'

/** Publishes the events of a request. Never throws. */
export type Emit = (event: RequestEvent) => void
/** The event fields that vary within one request. `Omit` of the union itself would keep only the common fields. */
type RequestEvent = IdempotencyEvent extends infer Event
  ? Event extends IdempotencyEvent
    ? Omit<Event, 'by' | 'caller' | 'requestId'>
    : never
  : never

/** A request that may run its handler, and the function that publishes its events. */
export interface IdempotentContext {
  readonly state: AdmittedState
  readonly request: Request
  readonly response: Response
  readonly next: NextFunction
  readonly emit: Emit
}

/** The key of a request, and what recognises a retry. */
export interface RequestKey {
  /** As the caller sent it, unquoted. */
  readonly key: string
  /** The digest of the key and its scope. */
  readonly recordId: string
  readonly fingerprint: string
}

/** `Retry-After` while a run of a coupled store is in progress: it has no lease. */
const RUNNING_RETRY_MS = 1000

interface Found {
  readonly found: Finding
  /** The token of this request, if it may be used only once. */
  readonly token: TokenUse | undefined
}

/** Answers a request whose handler must not run. */
export async function answerFinding(
  context: IdempotentContext,
  settings: IdempotencySettings,
  { found, token }: Found,
): Promise<void> {
  switch (found.outcome) {
    case 'running':
      refuseKey(context, 'request_in_progress', found.leaseLeftMs ?? RUNNING_RETRY_MS)
      return
    case 'finished':
      // A coupled store uses the token up in the transaction of a run, and here was none.
      if (!settings.isCoupled || (await useToken(context, settings, token)))
        replay(context, found.result)
      return
    case 'mismatch':
      refuseKey(context, 'key_reused')
      return
    case 'result_not_stored':
      refuseKey(context, 'result_not_stored')
      return
    case 'token_used':
      refuseToken(context, tokenReplayed(context.state.admission))
      return
    default:
      refuseUnknownOutcome(context, found.outcome)
  }
}

/** Answers with a stored result, or with a problem if it cannot be read. */
function replay(context: IdempotentContext, encoded: Uint8Array): void {
  const { response, emit } = context
  const result = decodeResult(encoded)
  if (result === undefined) {
    refuseUnknownOutcome(context, 'unreadable')
    return
  }
  const { status } = result
  try {
    replayResult(response, result)
  } catch (error) {
    reportUnsentAnswer(context, { error, status })
    return
  }
  emit({ outcome: 'accepted', reason: 'replayed', status })
}

interface Unsent {
  readonly error: unknown
  readonly status: number
  /** The fence of the run; a replay has none. */
  readonly fence?: number
}

/** Publishes that a stored answer could not be sent, and passes the cause to the app. */
export function reportUnsentAnswer(
  { next, emit }: Pick<IdempotentContext, 'next' | 'emit'>,
  { error, ...fields }: Unsent,
): void {
  emit({ outcome: 'accepted', reason: 'answer_unsent', ...fields })
  const message = 'requireIdempotencyKey could not send the answer'
  next(new ServiceAuthError('internal', message, { cause: error }))
}

/** Answers with a problem, and with `Retry-After` if `retryAfterMs` is given. */
export function refuseKey(
  { response, emit }: Pick<IdempotentContext, 'response' | 'emit'>,
  reason: Exclude<IdempotencyRefusal, 'outcome_unknown'>,
  retryAfterMs?: number,
): void {
  const seconds = retryAfterMs === undefined ? undefined : wholeSeconds(retryAfterMs)
  emit({ outcome: 'refused', reason, status: refuse(response, reason, seconds) })
}

/** At least one, also if a custom store says something other than a number. */
const wholeSeconds = (waitMs: number): number =>
  Number.isFinite(waitMs) ? Math.max(1, Math.ceil(waitMs / 1000)) : 1

function refuseUnknownOutcome(
  { response, emit }: IdempotentContext,
  found: 'abandoned' | 'unreadable',
): void {
  const reason = 'outcome_unknown'
  emit({ outcome: 'refused', reason, found, status: refuse(response, reason) })
}

/**
 * Uses up the token of a request, if each may be used only once. Otherwise refuses the request, and resolves with
 * `false`.
 */
export async function useToken(
  context: IdempotentContext,
  settings: IdempotencySettings,
  token: TokenUse | undefined,
): Promise<boolean> {
  const { usedTokens, dependency } = settings
  if (usedTokens === undefined || token === undefined) return true
  try {
    if (await consume(token, usedTokens)) return true
    refuseToken(context, tokenReplayed(context.state.admission))
  } catch (error) {
    if (!(error instanceof Unavailable)) {
      settings.reportFailure(error)
      throw error
    }
    refuseToken(context, undecided(error, [dependency]))
  }
  return false
}

/** Refuses a request because of its token, which is a decision. */
export function refuseToken(
  { state, request, response }: Pick<IdempotentContext, 'state' | 'request' | 'response'>,
  denial: Denial,
): void {
  const { identity, observers, schemes } = state.admission
  sendRefusal(response, refusalOf(denial.reason, schemes))
  if (isObserved(observers)) {
    const event = eventOf('requireIdempotencyKey', denial, identity, requestIdOf(request))
    announceDecision(observers, event)
  }
  if (denial.failure !== undefined) reportFailure(denial.failure, observers)
}

const LENGTH = 'content-length'

/**
 * Answers with a stored result. Calls `end`, because `send` of Express would add headers. `end` also writes the head,
 * so that an outer middleware can still change the head, as it can for a handler.
 */
export function replayResult(response: Response, { status, headers, body }: StoredResult): void {
  const isHead = response.req.method === 'HEAD'
  const hasBody = !isHead && !isBodyless(status)
  const headersToSend = headers.filter(([name]) => name !== LENGTH || isHead)
  for (const [name] of headersToSend) response.removeHeader(name)
  for (const [name, value] of headersToSend) response.appendHeader(name, value)
  response.setHeader('Idempotent-Replayed', 'true')
  response.setHeader('Cache-Control', 'no-store')
  // If the handler set no length, Node adds one, after outer middlewares have changed the body.
  const hasStoredLength = headers.some(([name]) => name === LENGTH)
  if (hasBody && hasStoredLength) response.setHeader('Content-Length', body.byteLength)
  keepHeadInOrder(response)
  response.statusCode = status
  // With `rejectNonStandardBodyWrites`, Node also throws for an empty body.
  response.end(hasBody && body.byteLength > 0 ? body : undefined)
}
