import type { Request } from 'express'
import type { DecisionObserver } from '../decision/event.js'
import { wrongWiring } from '../decision/fault.js'
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
  /** Frees the key that the request has reserved. */
  releaseKey: (() => void) | undefined
}

class Given {
  constructor(rawHeaders: RawHeaders) {
    // biome-ignore lint/correctness/noConstructorReturn: so that the private field is put on it.
    return rawHeaders
  }
}

/** A private field on a list: nobody else can read or write it, and it goes with the list. */
class Stamped extends Given {
  #state: RequestState | undefined = undefined

  static stateOf(request: Request): RequestState {
    const { rawHeaders } = request
    if (!(#state in rawHeaders)) new Stamped(rawHeaders)
    const stamped = rawHeaders as unknown as Stamped
    stamped.#state ??= newState(request, rawHeaders)
    return stamped.#state.request === request ? stamped.#state : furtherState(request, rawHeaders)
  }
}

/** Of requests that were made with the headers of another one, as for the parts of a batch. */
const furtherStates = new WeakMap<Request, RequestState>()

function furtherState(request: Request, rawHeaders: RawHeaders): RequestState {
  const known = furtherStates.get(request)
  if (known !== undefined) return known
  const state = newState(request, rawHeaders)
  furtherStates.set(request, state)
  return state
}

const newState = (request: Request, rawHeaders: RawHeaders): RequestState => ({
  request,
  rawHeaders,
  admission: undefined,
  unaccepted: 0,
  consumedIn: undefined,
  releaseKey: undefined,
})

/**
 * It is kept with the headers as they came, by which the request is judged: V8 adds no property to a
 * request behind Express without giving it a shape of its own, for which every access pays. A
 * request that is given other headers has no state any more, and no guard lets it pass.
 */
export const stateOf = (request: Request): RequestState => Stamped.stateOf(request)

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
  { releaseKey }: RequestState,
  by: string,
  mend = 'move it before',
): void {
  if (releaseKey === undefined) return
  releaseKey()
  throw wrongWiring(`${by} comes after requireIdempotencyKey on the request: ${mend}`)
}

/**
 * The caller that `serviceAuth` has accepted.
 *
 * @throws ServiceAuthError when no `serviceAuth` has accepted the request.
 */
export const serviceOf = (request: Request): ServiceIdentity =>
  admissionOf(stateOf(request), 'serviceOf').identity
