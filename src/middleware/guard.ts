import type { NextFunction, Response } from 'express'
import {
  announceDecision,
  type DecidedBy,
  type DecisionEvent,
  type DecisionObserver,
  isObserved,
} from '../decision/event.js'
import { faultOf } from '../decision/fault.js'
import { type Decision, deny, type UndecidedReason } from '../decision/reason.js'
import { Unavailable } from '../decision/unavailable.js'
import { type AnyRouteHandler, fitAnyRoute } from './any-route.js'
import { refuse, verdictOf } from './refuse.js'
import { requestIdOf } from './request-id.js'
import { type RequestState, stateOf } from './request-state.js'

/** One check: how it decides, and what an accepted request gains by it. */
export interface Guard<T> {
  readonly by: DecidedBy
  decide(state: RequestState): Decision<T> | Promise<Decision<T>>
  accept?(value: T, state: RequestState): void
  /** Who is told, beside the diagnostics channel. */
  observers(state: RequestState): readonly DecisionObserver[]
}

/** The one shape of all guards: decide, tell, and pass on, refuse or report a fault. */
export function guardHandler<T>(guard: Guard<T>): AnyRouteHandler {
  return fitAnyRoute((request, response, next) => {
    let exchange: Exchange
    let decision: Decision<T> | Promise<Decision<T>>
    try {
      exchange = { state: stateOf(request), response, next }
      decision = guard.decide(exchange.state)
    } catch (error) {
      next(faultOf(guard.by, error))
      return
    }
    if (decision instanceof Promise) concludeLater(guard, decision, exchange)
    else conclude(guard, decision, exchange)
  })
}

interface Exchange {
  readonly state: RequestState
  readonly response: Response
  readonly next: NextFunction
}

function concludeLater<T>(
  guard: Guard<T>,
  decision: Promise<Decision<T>>,
  exchange: Exchange,
): void {
  decision.then(
    (settled) => conclude(guard, settled, exchange),
    (error: unknown) => {
      // Only what is out of reach becomes a decision; every other failure stays one.
      if (error instanceof Unavailable) conclude(guard, deny(UNDECIDED[error.what]), exchange)
      else exchange.next(faultOf(guard.by, error))
    },
  )
}

const UNDECIDED: Record<Unavailable['what'], UndecidedReason> = {
  key_set: 'key_set_unavailable',
  store: 'store_unavailable',
}

function conclude<T>(
  guard: Guard<T>,
  decision: Decision<T>,
  { state, response, next }: Exchange,
): void {
  try {
    if (decision.ok) guard.accept?.(decision.value, state)
    else refuse(response, decision.reason)
    const observers = guard.observers(state)
    if (isObserved(observers)) announceDecision(observers, eventOf(guard.by, decision, state))
  } catch (error) {
    next(faultOf(guard.by, error))
    return
  }
  if (decision.ok) next()
}

function eventOf(by: DecidedBy, decision: Decision<unknown>, state: RequestState): DecisionEvent {
  const { request, admission } = state
  const requestId = requestIdOf(request)
  const id = requestId === undefined ? undefined : { requestId }
  if (!decision.ok) {
    return Object.freeze({ ...verdictOf(decision.reason), by, ...decision.evidence, ...id })
  }
  const known = admission && { caller: admission.identity.name, keyId: admission.identity.keyId }
  return Object.freeze({ outcome: 'accepted', by, ...known, ...id })
}
