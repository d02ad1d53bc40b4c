import type { NextFunction, Request, Response } from 'express'
import { faultOf } from '../../base/decision/service-auth-error.js'
import type { IdempotencyContext } from '../../idempotency/idempotency-context.js'
import { recordKey } from '../../idempotency/record-key.js'
import { type AnyRouteHandler, fitAnyRoute } from '../any-route.js'
import { runCoupled } from './coupled-attempt.js'
import { teller } from './idempotency-events.js'
import {
  type IdempotencyOptions,
  type IdempotencySettings,
  parseIdempotencyOptions,
} from './idempotency-options.js'
import { turnDown } from './idempotent-exchange.js'
import { readIdempotentRequest } from './idempotent-request.js'
import { runLeased } from './leased-attempt.js'

declare global {
  namespace Express {
    interface Request {
      /** The reservation, in a handler behind `requireIdempotencyKey`. */
      idempotency?: IdempotencyContext
    }
  }
}

/**
 * Reserves the request's `Idempotency-Key` (IETF draft-ietf-httpapi-idempotency-key-header) before the
 * handler runs, keeps the response before it is sent, and answers identical retries with it. With a
 * coupled store the handler runs inside a transaction, and what it writes commits together with its
 * answer. Needs a `serviceAuth` before it, and the body parsed.
 *
 * @throws TypeError when an option is unknown, of the wrong type or out of its range.
 */
export function requireIdempotencyKey(options: IdempotencyOptions): AnyRouteHandler {
  const settings = parseIdempotencyOptions(options)
  return fitAnyRoute((request, response, next) => {
    const fail = (error: unknown): void => next(faultOf('requireIdempotencyKey', error))
    try {
      beginAttempt({ request, response, next }, settings)?.catch(fail)
    } catch (error) {
      fail(error)
    }
  })
}

interface Exchange {
  readonly request: Request
  readonly response: Response
  readonly next: NextFunction
}

/** Answers at once where the key is missing or malformed. */
function beginAttempt(
  { request, response, next }: Exchange,
  settings: IdempotencySettings,
): Promise<void> | undefined {
  const read = readIdempotentRequest(request, response, settings)
  if (read === undefined) return undefined
  const { state, header, fingerprint, scope } = read
  const { caller } = scope
  if (header.type !== 'key') {
    const reason = header.type === 'missing' ? 'key_missing' : 'key_invalid'
    turnDown({ response, tell: teller(request, caller) }, reason)
    return undefined
  }
  const { key } = header
  const record = recordKey(scope, key)
  const tell = teller(request, caller, record)
  const attempt = { state, request, response, next, key, record, fingerprint, tell }
  return settings.kind === 'coupled' ? runCoupled(attempt, settings) : runLeased(attempt, settings)
}
