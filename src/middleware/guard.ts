import type { NextFunction, Request, Response } from 'express'
import {
  announceDecision,
  type DecidedBy,
  type DecisionEvent,
  type DecisionObserver,
  isObserved,
} from '../decision/event.js'
import { faultOf } from '../decision/fault.js'
import { type Decision, deny, type Evidence, type UndecidedReason } from '../decision/reason.js'
import { Unavailable } from '../decision/unavailable.js'
import { type AnyRouteHandler, fitAnyRoute } from './any-route.js'
import { refuse, verdictOf } from './refuse.js'
import { requestIdOf } from './request-id.js'
import { type RequestState, stateOf } from './request-state.js'

/** One check: how it decides, and what an accepted request gains by it. */
export interface Guard<T> {
  readonly by: DecidedBy
  decide(state: RequestState): Decision<T> | Promise<Decision<T>>
  /** Returns what operators learn of an accepted request. */
  accept(value: T, state: RequestState, request: Request): Evidence
  /** Who is told, beside the diagnostics channel. */
  observers(state: RequestState): readonly DecisionObserver[]
}

/** The one shape of all guards: decide, tell, and pass on, refuse or report a fault. */
export function guardHandler<T>(guard: Guard<T>): AnyRouteHandler {
  return fitAnyRoute((request, response, next) => {
    let state: RequestState
    let decision: Decision<T> | Promise<Decision<T>>
    try {
      state = stateOf(request)
      decision = guard.decide(state)
    } catch (error) {
      next(faultOf(guard.by, error))
      return
    }
    const settle = (settled: Decision<T>): void =>
      conclude(guard, settled, { state, request, response, next })
    if (!(decision instanceof Promise)) settle(decision)
    else {
      decision.then(settle, (error: unknown) => {
        // Only what is out of reach becomes a decision; every other failure stays one.
        if (error instanceof Unavailable) settle(deny(UNDECIDED[error.what]))
        else next(faultOf(guard.by, error))
      })
    }
  })
}

const UNDECIDED: Record<Unavailable['what'], UndecidedReason> = {
  key_set: 'key_set_unavailable',
  store: 'store_unavailable',
}

interface Exchange {
  readonly state: RequestState
  readonly request: Request
  readonly response: Response
  readonly next: NextFunction
}

function conclude<T>(
  guard: Guard<T>,
  decision: Decision<T>,
  { state, request, response, next }: Exchange,
): void {
  try {
    const evidence = decision.ok ? guard.accept(decision.value, state, request) : decision.evidence
    if (!decision.ok) refuse(response, decision.reason)
    const observers = guard.observers(state)
    if (isObserved(observers)) {
      announceDecision(observers, eventOf(guard.by, decision, { evidence, request }))
    }
  } catch (error) {
    next(faultOf(guard.by, error))
    return
  }
  if (decision.ok) next()
}

function eventOf(
  by: DecidedBy,
  decision: Decision<unknown>,
  { evidence, request }: { evidence: Evidence; request: Request },
): DecisionEvent {
  const requestId = requestIdOf(request)
  const context = { by, ...evidence, ...(requestId !== undefined && { requestId }) }
  const verdict = decision.ok ? ({ outcome: 'accepted' } as const) : verdictOf(decision.reason)
  return Object.freeze({ ...verdict, ...context })
}
