import type { Request } from 'express'
import type { DecisionObserver } from '../decision/event.js'
import { wrongWiring } from '../decision/fault.js'
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

interface RequestState {
  admission: Admission | undefined
  /** How many of its `serviceAuth` have not accepted the request: all must, or nothing counts. */
  unaccepted: number
  /** The stores in which the request's token has been consumed. */
  readonly consumedIn: Set<object>
  /** Frees the key that the request has reserved. */
  releaseKey: (() => void) | undefined
}

// Not a property of the request: what stands there could be put there by anybody.
const states = new WeakMap<Request, RequestState>()

export function stateOf(request: Request): RequestState {
  const known = states.get(request)
  if (known !== undefined) return known
  const consumedIn = new Set<object>()
  const state = { admission: undefined, unaccepted: 0, consumedIn, releaseKey: undefined }
  states.set(request, state)
  return state
}

/**
 * The admission that a guard builds on.
 *
 * @throws ServiceAuthError when there is none.
 */
export function admissionOf(request: Request, by: string): Admission {
  const state = states.get(request)
  if (state?.admission === undefined || state.unaccepted > 0) {
    throw wrongWiring(`${by} needs a serviceAuth before it on the request`)
  }
  return state.admission
}

/**
 * A check after the key would have its refusal stored, and be skipped by a replay.
 *
 * @throws ServiceAuthError when the request has reserved its key already; the key is freed.
 */
export function assertBeforeKey(request: Request, by: string, mend = 'move it before'): void {
  const releaseKey = states.get(request)?.releaseKey
  if (releaseKey === undefined) return
  releaseKey()
  throw wrongWiring(`${by} comes after requireIdempotencyKey on the request: ${mend}`)
}

/**
 * The caller that `serviceAuth` has accepted.
 *
 * @throws ServiceAuthError when no `serviceAuth` has accepted the request.
 */
export function serviceOf(request: Request): ServiceIdentity {
  return admissionOf(request, 'serviceOf').identity
}
