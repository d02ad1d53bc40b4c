import type { NextFunction, Request, RequestHandler } from 'express'
import {
  announceDecision,
  type DecisionEvent,
  type DecisionObserver,
  isObserved,
} from '../../base/decision/decision-event.js'
import { allow, type Decision, type Denial, deny } from '../../base/decision/reason.js'
import { faultOf, wrongWiring } from '../../base/decision/service-auth-error.js'
import { ignoreRejection } from '../../verification/policy/denial.js'
import { refuse, verdictOf } from '../refusals.js'
import { requestIdOf } from '../request-id.js'
import { type AcceptedCredential, assertBeforeKey, type RequestState } from '../request-state.js'
import type { CheckedChoice } from './choice.js'
import { CredentialRefused } from './credential-refused.js'
import { type Exchange, type HandlerEnd, runHandler } from './run-handler.js'

const BY = 'acceptOneOf'

/** A request on its way through one `acceptOneOf`. */
export interface Passage extends Exchange {
  /** The middleware itself, which the verdict belongs to. */
  readonly gate: object
  readonly observers: readonly DecisionObserver[]
  readonly state: RequestState
  readonly next: NextFunction
}

/** Decides which credential is presented, before anything is verified, and has that one verified. */
export function enter(choices: readonly CheckedChoice[], passage: Passage): void {
  const { state, request } = passage
  let presented: Decision<CheckedChoice>
  try {
    forget(passage)
    assertBeforeKey(state, BY)
    presented = presentedOf(choices, request)
  } catch (error) {
    stop(faultOf(BY, error), passage)
    return
  }
  if (presented.ok) verify(presented.value, passage)
  else turnAway(presented, passage)
}

function presentedOf(choices: readonly CheckedChoice[], request: Request): Decision<CheckedChoice> {
  let presented: CheckedChoice | undefined
  let count = 0
  for (const choice of choices) {
    if (!isPresented(choice, request)) continue
    presented = choice
    count += 1
  }
  if (presented === undefined) return deny('credentials_missing')
  return count === 1 ? allow(presented) : deny('credentials_ambiguous')
}

function isPresented(choice: CheckedChoice, request: Request): boolean {
  const answer = choice.presented(request)
  if (typeof answer === 'boolean') return answer
  ignoreRejection(answer)
  throw wrongWiring(`${BY}: presented of ${choice.name} must return a boolean`)
}

/** Its answer is final: no other verifier sees the request. */
function verify(choice: CheckedChoice, passage: Passage): void {
  runHandler(choice.verify, passage, (end) => {
    if (end.type === 'passed') accept(choice, passage)
    else if (end.type === 'failed' && end.error instanceof CredentialRefused) {
      turnAway(end.error.denial, passage, choice.name)
    } else if (end.type === 'thrown') stop(faultOf(BY, end.error), passage)
    else stop(errorOf(end, `verify of ${choice.name}`), passage)
  })
}

function accept(choice: CheckedChoice, passage: Passage): void {
  const { name, authorize } = choice
  const { gate, state, request } = passage
  try {
    const identity = identityOf(choice, request)
    if (identity === undefined || identity === null) {
      turnAway(deny('identity_missing'), passage, name)
      return
    }
    const credential: AcceptedCredential = Object.freeze({ name, identity })
    state.credentials ??= new Map()
    state.credentials.set(gate, credential)
    request.credential = credential
    tell(passage, () => acceptedEvent(credential, state))
  } catch (error) {
    stop(faultOf(BY, error), passage)
    return
  }
  if (authorize.length === 0) passage.next()
  else authorizeBy(authorize, passage, name)
}

function identityOf({ name, identity }: CheckedChoice, request: Request): unknown {
  const found = identity(request)
  if (typeof (found as { then?: unknown } | null | undefined)?.then !== 'function') return found
  ignoreRejection(found)
  throw wrongWiring(`${BY}: identity of ${name} must not be a promise`)
}

/** One handler after the other, as in a route, but only `next()` leads on. */
function authorizeBy(handlers: readonly RequestHandler[], passage: Passage, name: string): void {
  const [handler, ...others] = handlers
  if (handler === undefined) {
    passage.next()
    return
  }
  runHandler(handler, passage, (end) => {
    if (end.type === 'passed') authorizeBy(others, passage, name)
    else stop(errorOf(end, `authorize of ${name}`), passage)
  })
}

/** Passes on what a handler gave to `next`, or threw, unchanged, as Express does. */
const errorOf = (end: Exclude<HandlerEnd, { type: 'passed' }>, handler: string): unknown =>
  end.type === 'misused' ? wrongWiring(`${BY}: ${handler} ${end.fault}`) : end.error

/** Refuses the request. */
function turnAway(denial: Denial, passage: Passage, credential?: string): void {
  withdraw(passage)
  try {
    refuse(passage.response, denial.reason)
    tell(passage, () => ({
      ...verdictOf(denial.reason),
      by: BY,
      ...denial.evidence,
      ...(credential !== undefined && { credential }),
    }))
  } catch (error) {
    passage.next(faultOf(BY, error))
  }
}

/** Reports a fault. */
function stop(error: unknown, passage: Passage): void {
  withdraw(passage)
  passage.next(error)
}

/** Withdraws what was accepted here, even if an error handler continues the request. */
function withdraw(passage: Passage): void {
  passage.state.unaccepted += 1
  forget(passage)
}

/** Never throws, not even if `req.credential` cannot be redefined, because nothing would catch it. */
function forget({ gate, state, request }: Passage): void {
  if (state.credentials?.delete(gate)) Reflect.deleteProperty(request, 'credential')
}

function acceptedEvent(credential: AcceptedCredential, { admission }: RequestState): DecisionEvent {
  const { name, identity } = credential
  const isService = admission !== undefined && identity === admission.identity
  const known = isService && { caller: admission.identity.name, keyId: admission.identity.keyId }
  return { outcome: 'accepted', by: BY, credential: name, ...known }
}

function tell({ observers, request }: Passage, event: () => DecisionEvent): void {
  if (!isObserved(observers)) return
  const requestId = requestIdOf(request)
  const id = requestId === undefined ? undefined : { requestId }
  announceDecision(observers, Object.freeze({ ...event(), ...id }))
}
