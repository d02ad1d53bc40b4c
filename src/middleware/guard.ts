import type { NextFunction, Request, Response } from 'express'
import {
  announceDecision,
  type DecidedBy,
  type DecisionEvent,
  type DecisionObserver,
  isObserved,
} from '../base/decision/decision-event.js'
import {
  type Dependency,
  DependencyError,
  type DependencyFailure,
} from '../base/decision/dependency.js'
import type { Schemes } from '../base/decision/problem.js'
import { type Decision, type Denial, deny, type UndecidedReason } from '../base/decision/reason.js'
import { toServiceAuthError, Unavailable } from '../base/decision/service-auth-error.js'
import type { ServiceIdentity } from '../verification/policy/identity.js'
import { type AnyRouteHandler, fitAnyRoute } from './any-route.js'
import { decisionResult, refusalOf, sendRefusal } from './refusal-table.js'
import { requestIdOf } from './request-id.js'
import {
  type AdmittedState,
  admittedState,
  assertBeforeKey,
  beginState,
  type RequestState,
} from './request-state.js'

/** One check: how it decides, and what it does with an accepted request. */
interface Guard<State extends RequestState, T> {
  readonly by: DecidedBy
  decide(state: State): Decision<T> | Promise<Decision<T>>
  accept?(value: T, state: State): void
  /** Called in addition to the diagnostics channel. */
  observers(state: State): readonly DecisionObserver[]
  /** The key set, denylists and stores by which it decides. */
  dependencies(state: State): readonly Dependency[]
  /** The schemes of the challenge in a refusal. */
  schemes(state: State): Schemes
}

/** Makes the middleware of a guard that admits requests (`serviceAuth`). */
export const admittingHandler = <T>(guard: Guard<RequestState, T>): AnyRouteHandler =>
  handlerOf(guard, beginState)

/** Makes the middleware of a guard that needs an admitted request; without one, `next(error)`. */
export const guardHandler = <T>(guard: Omit<Guard<AdmittedState, T>, 'schemes'>): AnyRouteHandler =>
  handlerOf<AdmittedState, T>(
    {
      ...guard,
      schemes: ({ admission }) => admission.schemes,
    },
    admittedState,
  )

/** All guards do the same: check the order, decide, publish, then continue, refuse or report an error. */
function handlerOf<State extends RequestState, T>(
  guard: Guard<State, T>,
  stateFor: (request: Request, by: string) => State,
): AnyRouteHandler {
  return fitAnyRoute(guard.by, (request, response, next) => {
    let state: State
    try {
      state = stateFor(request, guard.by)
      assertBeforeKey(state, guard.by)
    } catch (error) {
      next(toServiceAuthError(guard.by, error))
      return
    }
    const context = { state, response, next }
    let decision: Decision<T> | Promise<Decision<T>>
    try {
      decision = guard.decide(state)
    } catch (error) {
      fail(guard, error, context)
      return
    }
    if ('ok' in decision) conclude(guard, decision, context)
    else concludeLater(guard, decision, context)
  })
}

interface GuardContext<State> {
  readonly state: State
  readonly response: Response
  readonly next: NextFunction
}

function concludeLater<State extends RequestState, T>(
  guard: Guard<State, T>,
  decision: Promise<Decision<T>>,
  context: GuardContext<State>,
): void {
  decision.then(
    (settled) => conclude(guard, settled, context),
    (error: unknown) => {
      // Only `Unavailable` becomes a 503; everything else goes to `next(error)`.
      if (error instanceof Unavailable)
        conclude(guard, undecided(error, guard.dependencies(context.state)), context)
      else fail(guard, error, context)
    },
  )
}

/** The denial of a request that could not be decided, because one of the dependencies failed. */
export function undecided(
  { what, message }: Unavailable,
  dependencies: readonly Dependency[],
): Denial {
  const dependency = dependencies.find(({ kind }) => kind === what)
  return deny(UNDECIDED[what], undefined, dependency && { dependency, message })
}

const UNDECIDED: Record<Unavailable['what'], UndecidedReason> = {
  key_set: 'key_set_unavailable',
  denylist: 'denylist_unavailable',
  store: 'store_unavailable',
}

function conclude<State extends RequestState, T>(
  guard: Guard<State, T>,
  decision: Decision<T>,
  { state, response, next }: GuardContext<State>,
): void {
  try {
    if (decision.ok) guard.accept?.(decision.value, state)
    else sendRefusal(response, refusalOf(decision.reason, guard.schemes(state)))
    const observers = guard.observers(state)
    if (isObserved(observers)) {
      const { request, admission } = state
      const requestId = requestIdOf(request)
      announceDecision(observers, eventOf(guard.by, decision, admission?.identity, requestId))
    }
  } catch (error) {
    next(toServiceAuthError(guard.by, error))
    return
  }
  if (decision.ok) {
    next()
  } else if (decision.failure !== undefined) {
    reportFailure(decision.failure, guard.observers(state))
  }
}

function fail<State extends RequestState, T>(
  guard: Guard<State, T>,
  error: unknown,
  { state, next }: GuardContext<State>,
): void {
  if (error instanceof DependencyError) {
    reportFailure(error, guard.observers(state))
  }
  next(toServiceAuthError(guard.by, error))
}

/** `observers` are those of the middleware whose decision the failure prevented. */
export function reportFailure(
  { dependency, message }: DependencyFailure,
  observers: readonly DecisionObserver[],
): void {
  dependency.failed({ message, isObserved: isObserved(observers) })
}

/** The event of a decision. `identity` is the accepted caller. */
export function eventOf(
  by: DecidedBy,
  decision: Decision<unknown>,
  identity: ServiceIdentity | undefined,
  requestId: string | number | undefined,
): DecisionEvent {
  const id = requestId === undefined ? undefined : { requestId }
  if (!decision.ok) {
    return Object.freeze({ ...decisionResult(decision.reason), by, ...decision.evidence, ...id })
  }
  return Object.freeze({ outcome: 'accepted', by, ...(identity && factsOf(identity)), ...id })
}

/** The part of an event that says who was accepted. */
const factsOf = ({ name, keyId, confirmation }: ServiceIdentity) =>
  ({ caller: name, keyId, confirmation: confirmation?.kind ?? 'none' }) as const
