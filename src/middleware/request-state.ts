import type { Request } from 'express'
import type { DecisionObserver } from '../decision/event.js'
import { wrongWiring } from '../decision/fault.js'
import type { IdempotencyContext } from '../idempotency/run.js'
import { createNotes } from '../notes.js'
import type { ServiceIdentity } from '../policy/identity.js'
import type { RawHeaders } from '../token/bearer.js'

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

const states = createNotes<Request, RequestState>((request) => request)

const newState = (request: Request): RequestState => ({
  request,
  rawHeaders: request.rawHeaders,
  admission: undefined,
  unaccepted: 0,
  consumedIn: undefined,
  reservation: undefined,
})

/**
 * It is kept with the headers as they came, by which the request is judged. A request that is given
 * other headers has no state any more, and no guard lets it pass.
 */
export function stateOf(request: Request): RequestState {
  const known = states.get(request)
  if (known !== undefined) return known
  const state = newState(request)
  states.set(request, state)
  return state
}

/** What the guards know so far of a request, or of that for which a wrapper stands. */
export const knownStateOf = (seen: object): RequestState | undefined => states.find(seen)

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
