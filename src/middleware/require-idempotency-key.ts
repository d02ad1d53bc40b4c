import { randomUUID } from 'node:crypto'
import type { Request, Response } from 'express'
import { faultOf, wrongWiring } from '../decision/fault.js'
import { callStore } from '../decision/store-call.js'
import { decodeResult } from '../held-response/result.js'
import type { IdempotencyContext } from '../idempotency/context.js'
import { type IdempotencyRefusal, laterInThisContext } from '../idempotency/event.js'
import { recordKey } from '../idempotency/operation.js'
import { beginRun } from '../leased/run.js'
import type { Reservation, ReservationRequest } from '../leased/store.js'
import { type AnyRouteHandler, fitAnyRoute } from './any-route.js'
import {
  type IdempotencyOptions,
  type IdempotencySettings,
  parseIdempotencyOptions,
} from './idempotency-options.js'
import { type Tell, teller } from './idempotency-teller.js'
import { readIdempotentRequest } from './idempotent-request.js'
import { refuse } from './refusals.js'
import { replayResult } from './replay-result.js'
import type { AdmittedState } from './request-state.js'

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
 * handler runs, keeps the response before it is sent, and answers identical retries with it. Needs a
 * `serviceAuth` before it, and the body parsed.
 *
 * @throws TypeError when an option is unknown, of the wrong type or out of its range.
 */
export function requireIdempotencyKey(options: IdempotencyOptions): AnyRouteHandler {
  const settings = parseIdempotencyOptions(options)
  return fitAnyRoute((request, response, next) => {
    const fail = (error: unknown): void => next(faultOf('requireIdempotencyKey', error))
    try {
      const attempt = reserveKey(request, response, settings)
      attempt?.then((isReserved) => {
        if (isReserved) next()
      }, fail)
    } catch (error) {
      fail(error)
    }
  })
}

/** A request with a key: what it asks of the store, and how to tell observers what becomes of it. */
interface Attempt {
  readonly state: AdmittedState
  readonly request: Request
  readonly response: Response
  readonly settings: IdempotencySettings
  readonly key: string
  readonly reservation: ReservationRequest
  readonly tell: Tell
}

/** Resolves to `true` when the handler is to run; otherwise the request has been answered. */
function reserveKey(
  request: Request,
  response: Response,
  settings: IdempotencySettings,
): Promise<boolean> | undefined {
  const { state, header, fingerprint, scope } = readIdempotentRequest(request, response, settings)
  const { caller } = scope
  if (header.type !== 'key') {
    turnDown(
      response,
      teller(request, caller),
      header.type === 'missing' ? 'key_missing' : 'key_invalid',
    )
    return undefined
  }
  const { retentionMs, leaseMs, rerunAbandoned } = settings
  const key = recordKey(scope, header.key)
  const owner = randomUUID()
  const tell = teller(request, caller, key)
  const reservation = { key, owner, fingerprint, leaseMs, retentionMs, rerunAbandoned }
  return reserve({ state, request, response, settings, key: header.key, reservation, tell })
}

async function reserve(attempt: Attempt): Promise<boolean> {
  const { response, settings, reservation, tell } = attempt
  const reservedAt = performance.now()
  let found: Reservation
  try {
    found = await callStore('reserve', () => settings.store.reserve(reservation))
  } catch {
    refuse(response, 'store_unavailable')
    tell({ outcome: 'undecided', reason: 'store_unavailable', status: 503 })
    return false
  }
  switch (found.outcome) {
    case 'reserved':
      if (response.headersSent) return tooLate(attempt, found.fence)
      run(attempt, found.fence, reservedAt)
      return true
    case 'running':
      return turnDown(response, tell, 'request_in_progress', found.leaseLeftMs)
    case 'finished':
      return replay(attempt, found.result)
    case 'mismatch':
      return turnDown(response, tell, 'key_reused')
    case 'result_not_stored':
      return turnDown(response, tell, 'result_not_stored')
    case 'abandoned':
    case 'unreadable':
      return outcomeUnknown(attempt, found.outcome)
    default:
      throw new TypeError('store.reserve resolved to none of the outcomes of a reservation')
  }
}

/** Something else (a timeout, say) has answered while the key was being reserved. */
async function tooLate({ settings, reservation }: Attempt, fence: number): Promise<never> {
  const run = { ...reservation, fence }
  try {
    await callStore('settle', () => settings.store.settle(run, { type: 'released' }))
  } catch {
    // Its lease will run out.
  }
  throw wrongWiring('the response had begun before the key was reserved')
}

function run(attempt: Attempt, fence: number, reservedAt: number): void {
  const { state, request, response, settings, key, reservation, tell } = attempt
  if (!Number.isSafeInteger(fence))
    throw new TypeError('store.reserve gave no safe integer as fence')
  const { key: record, owner, fingerprint, leaseMs, retentionMs } = reservation
  const context = beginRun({
    settings,
    run: { key: record, owner, fence, fingerprint, leaseMs, retentionMs },
    key,
    response,
    isHead: request.method === 'HEAD',
    reservedAt,
    onEnd: laterInThisContext((end, status) => {
      tell({ outcome: 'accepted', reason: end, fence, ...(status !== undefined && { status }) })
    }),
  })
  state.reservation = context
  request.idempotency = context
  tell({ outcome: 'accepted', reason: 'reserved', fence })
}

function replay(attempt: Attempt, encoded: Uint8Array): false {
  const { response, tell } = attempt
  const result = decodeResult(encoded)
  if (result === undefined) return outcomeUnknown(attempt, 'unreadable')
  replayResult(response, result)
  tell({ outcome: 'accepted', reason: 'replayed', status: result.status })
  return false
}

function turnDown(
  response: Response,
  tell: Tell,
  reason: Exclude<IdempotencyRefusal, 'outcome_unknown'>,
  retryAfterMs?: number,
): false {
  const seconds =
    retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1000))
  tell({ outcome: 'refused', reason, status: refuse(response, reason, seconds) })
  return false
}

function outcomeUnknown({ response, tell }: Attempt, found: 'abandoned' | 'unreadable'): false {
  const reason = 'outcome_unknown'
  tell({ outcome: 'refused', reason, found, status: refuse(response, reason) })
  return false
}
