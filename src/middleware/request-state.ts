import type { Request } from 'express'
import type { RawHeaders } from '../base/raw-headers.js'
import { createStamp, isObject, peek, standsFor } from '../base/stamp.js'
import type { DecisionObserver } from '../decision/event.js'
import { wrongWiring } from '../decision/fault.js'
import type { IdempotencyContext } from '../idempotency/run.js'
import type { ServiceIdentity } from '../policy/identity.js'

/** What `serviceAuth` has established about a request. */
export interface Admission {
  readonly identity: ServiceIdentity
  /** The permissions that count, whatever became of `req.service`. */
  readonly granted: readonly string[]
  readonly observers: readonly DecisionObserver[]
  readonly clock: () => number
  readonly clockToleranceSeconds: number
}

/** What the guards know of a request. */
export interface RequestState {
  /** Whose state it is. */
  readonly request: Request
  /** The headers as they came on the wire. */
  readonly rawHeaders: RawHeaders
  admission: Admission | undefined
  /** How many of its `serviceAuth` have not accepted the request: all must, or nothing counts. */
  unaccepted: number
  /** The stores in which the request's token has been consumed. */
  consumedIn: Set<object> | undefined
  /** Of the key that the request has reserved. */
  reservation: IdempotencyContext | undefined
}

const states = createStamp<RequestState>()

/**
 * Of requests that share their stream with another one, as wrappers do, of those that were given
 * other headers, and of what is a request in form only.
 */
const furtherStates = new WeakMap<Request, RequestState>()

const newState = (request: Request, rawHeaders: RawHeaders): RequestState => ({
  request,
  rawHeaders,
  admission: undefined,
  unaccepted: 0,
  consumedIn: undefined,
  reservation: undefined,
})

/**
 * What the guards know of this very request, by the headers that it has. A request that is given other
 * headers begins anew, and no guard that needs an admission lets it pass.
 */
export function stateOf(request: Request): RequestState {
  const stream = peek(request, STREAM)
  const rawHeaders = peek(request, 'rawHeaders') as RawHeaders
  const isOf = (state: RequestState | undefined): state is RequestState =>
    state?.request === request && state.rawHeaders === rawHeaders

  const first = states.get(stream)
  if (isOf(first)) return first
  const further = furtherStates.get(request)
  if (isOf(further)) return further
  const state = newState(request, rawHeaders)
  const isFirst = first === undefined && Object.hasOwn(request, STREAM)
  if (isFirst && isObject(stream)) states.set(stream, state)
  else furtherStates.set(request, state)
  return state
}

/** Node makes one for each request, and keeps it. */
const STREAM = '_readableState'

/** What the guards know of the first request on a stream, asked by it or by what stands for it. */
export function streamStateOf(seen: object): RequestState | undefined {
  const first = states.get(peek(seen, STREAM))
  return first !== undefined && standsFor(seen, first.request) ? first : undefined
}

/**
 * The admission that a guard builds on.
 *
 * @throws ServiceAuthError when there is none.
 */
export function admissionOf({ admission, unaccepted }: RequestState, by: string): Admission {
  if (admission === undefined || unaccepted > 0) {
    throw wrongWiring(`${by} needs a serviceAuth before it on the request`)
  }
  return admission
}

/**
 * A check after the key would have its refusal stored, and be skipped by a replay.
 *
 * @throws ServiceAuthError when the request has reserved its key already; the key is freed.
 */
export function assertBeforeKey(
  { reservation }: RequestState,
  by: string,
  mend = 'move it before',
): void {
  if (reservation === undefined) return
  reservation.release()
  throw wrongWiring(`${by} comes after requireIdempotencyKey on the request: ${mend}`)
}

/**
 * The caller that `serviceAuth` has accepted.
 *
 * @throws ServiceAuthError when no `serviceAuth` has accepted the request.
 */
export const serviceOf = (request: Request): ServiceIdentity =>
  admissionOf(stateOf(request), 'serviceOf').identity
