import type { Request } from 'express'
import type { DecisionObserver } from '../base/decision/decision-event.js'
import type { Dependency } from '../base/decision/dependency.js'
import type { Schemes } from '../base/decision/problem.js'
import { wrongWiring } from '../base/decision/service-auth-error.js'
import { isObject } from '../base/options.js'
import type { Proof } from '../verification/confirmation/check-proof.js'
import type { ServiceIdentity } from '../verification/policy/identity.js'

/** The parts of a policy that guards use. */
export interface Terms {
  readonly observers: readonly DecisionObserver[]
  /** The key set and the live denylists. */
  readonly dependencies: readonly Dependency[]
  readonly clock: () => number
  readonly clockToleranceSeconds: number
  /** The schemes of the challenge in a refusal. */
  readonly schemes: Schemes
}

/** The result of `serviceAuth` for a request. */
export interface Admission extends Omit<Terms, 'dependencies'> {
  /** Guards use this identity, whatever the app has assigned to `req.service`. */
  readonly identity: ServiceIdentity
  /** The proof that came with a token that is bound to a key. */
  readonly proof: Proof | undefined
}

/** The credential that an `acceptOneOf` accepted: the name of the choice, and the owner. */
export interface AcceptedCredential {
  /** The `name` of the choice. */
  readonly name: string
  /** The result of the choice's `identity`. */
  readonly identity: unknown
}

/** A request that has passed `requireIdempotencyKey`, with a reserved key or without one. */
interface KeyReservation {
  /** Stores nothing at the end, and rolls back a transaction. */
  release(): void
}

/** The state that guards share for a request. */
export interface RequestState {
  /** The request itself: copies, proxies and wrappers of it have no state. */
  readonly request: Request
  admission: Admission | undefined
  /** The terms of the policy by which the latest `serviceAuth` decides. */
  terms: Terms | undefined
  /** How many middlewares (`serviceAuth`, `acceptOneOf`) have not accepted the request. Guards require 0. */
  unaccepted: number
  /** The credential that each `acceptOneOf` accepted. */
  credentials: Map<object, AcceptedCredential> | undefined
  /** The stores in which the request's token has been consumed. */
  storesThatConsumed: Set<object> | undefined
  /** Set by `requireIdempotencyKey`. */
  reservation: KeyReservation | undefined
}

/** The state of a request that is admitted. */
export interface AdmittedState extends RequestState {
  admission: Admission
}

const STATE: unique symbol = Symbol('express-service-auth request')

type Carrier = Request & { [STATE]?: RequestState }

/** The state of this very request; it begins with a `serviceAuth` or an `acceptOneOf`. */
export function beginState(request: Request): RequestState {
  const known = findState(request)
  if (known !== undefined) return known
  const state: RequestState = {
    request,
    admission: undefined,
    terms: undefined,
    unaccepted: 0,
    credentials: undefined,
    storesThatConsumed: undefined,
    reservation: undefined,
  }
  const carrier: Carrier = request
  carrier[STATE] = state
  return state
}

function findState(request: Carrier): RequestState | undefined {
  const state = request[STATE]
  return state?.request === request ? state : undefined
}

/**
 * The state of a request that every `serviceAuth` before `by` has accepted.
 *
 * @throws ServiceAuthError if there is no `serviceAuth` before `by`, or if one has not accepted the request.
 */
export function admittedState(request: Request, by: string): AdmittedState {
  const state = findState(request)
  if (state?.admission === undefined || state.unaccepted > 0) {
    throw wrongWiring(`${by} needs a serviceAuth before it on the request`)
  }
  return state as AdmittedState
}

/**
 * Refuses a check that comes after `requireIdempotencyKey`: its refusal would be stored as the result,
 * and a replay would skip it.
 *
 * @throws ServiceAuthError if the request has reserved its key already; the key is freed.
 */
export function assertBeforeKey(
  { reservation }: RequestState,
  by: string,
  fix = 'move it before',
): void {
  if (reservation === undefined) return
  reservation.release()
  throw wrongWiring(`${by} comes after requireIdempotencyKey on the request: ${fix}`)
}

/**
 * The caller that `serviceAuth` has accepted.
 *
 * @throws ServiceAuthError if no `serviceAuth` has accepted the request.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { serviceAuth, serviceOf } from 'express-service-auth'
 * import { createTestIssuer } from 'express-service-auth/testing'
 *
 * const app = express().use(serviceAuth((await createTestIssuer()).policy()))
 * app.get('/', (req, res) => {
 *   res.send(`Hello ${serviceOf(req).name}`)
 * })
 * ```
 */
export function serviceOf(request: Request): ServiceIdentity {
  if (!isObject(request)) throw new TypeError('serviceOf: must be given the request')
  return admittedState(request, 'serviceOf').admission.identity
}

/**
 * The credential that this `acceptOneOf` accepted on the request.
 *
 * @throws ServiceAuthError if it has accepted nothing.
 */
export function credentialBy(middleware: object, request: Request): AcceptedCredential {
  const credential = findState(request)?.credentials?.get(middleware)
  if (credential !== undefined) return credential
  throw wrongWiring('credentialOf needs its acceptOneOf before it on the request')
}
