import type { NextFunction, Request, Response } from 'express'
import {
  announceDecision,
  type DecidedBy,
  type DecisionObserver,
  isObserved,
} from '../decision/event.js'
import { faultOf } from '../decision/fault.js'
import { type Decision, deny, type Evidence, type UndecidedReason } from '../decision/reason.js'
import { Unavailable } from '../decision/unavailable.js'
import { type AnyRouteHandler, fitAnyRoute } from './any-route.js'
import { refuse, verdictOf } from './refuse.js'
import { requestIdOf } from './request-id.js'

/** One check: how it decides, and what an accepted request gains by it. */
export interface Guard<T> {
  readonly by: DecidedBy
  decide(request: Request): Decision<T> | Promise<Decision<T>>
  /** Returns what operators learn of an accepted request. */
  accept(request: Request, value: T): Evidence
  /** Who is told, beside the diagnostics channel. */
  observers(request: Request): readonly DecisionObserver[]
}

/** The one shape of all guards: decide, tell, and pass on, refuse or report a fault. */
export function guardHandler<T>(guard: Guard<T>): AnyRouteHandler {
  return fitAnyRoute((request, response, next) => {
    let decision: Decision<T> | Promise<Decision<T>>
    try {
      decision = guard.decide(request)
    } catch (error) {
      next(faultOf(guard.by, error))
      return
    }
    const settle = (settled: Decision<T>): void =>
      conclude(guard, settled, [request, response, next])
    if (!(decision instanceof Promise)) settle(decision)
    else decision.catch(undecided).then(settle, (error: unknown) => next(faultOf(guard.by, error)))
  })
}

const UNDECIDED: Record<Unavailable['what'], UndecidedReason> = {
  key_set: 'key_set_unavailable',
  store: 'store_unavailable',
}

/** Only what is out of reach becomes a decision; every other failure stays one. */
function undecided(error: unknown): Decision<never> {
  if (error instanceof Unavailable) return deny(UNDECIDED[error.what])
  throw error
}

function conclude<T>(
  guard: Guard<T>,
  decision: Decision<T>,
  [request, response, next]: [Request, Response, NextFunction],
): void {
  try {
    const evidence = decision.ok ? guard.accept(request, decision.value) : decision.evidence
    if (!decision.ok) refuse(response, decision.reason)
    tell(guard, decision, { evidence, request })
  } catch (error) {
    next(faultOf(guard.by, error))
    return
  }
  if (decision.ok) next()
}

function tell<T>(
  guard: Guard<T>,
  decision: Decision<T>,
  { evidence, request }: { evidence: Evidence; request: Request },
): void {
  const observers = guard.observers(request)
  if (!isObserved(observers)) return
  const requestId = requestIdOf(request)
  const context = { by: guard.by, ...evidence, ...(requestId !== undefined && { requestId }) }
  const verdict = decision.ok ? ({ outcome: 'accepted' } as const) : verdictOf(decision.reason)
  announceDecision(observers, Object.freeze({ ...verdict, ...context }))
}
