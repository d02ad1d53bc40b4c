import type { NextFunction, Request, RequestHandler } from 'express'
import {
  announceDecision,
  type DecisionEvent,
  type DecisionObserver,
  isObserved,
} from '../../base/decision/decision-event.js'
import { DependencyError } from '../../base/decision/dependency.js'
import { ignoreRejection } from '../../base/decision/observers.js'
import type { Schemes } from '../../base/decision/problem.js'
import { allow, type Decision, type Denial, deny } from '../../base/decision/reason.js'
import { toServiceAuthError, wrongWiring } from '../../base/decision/service-auth-error.js'
import { factsOf, reportFailure } from '../guard.js'
import { decisionResult, refusalOf, sendRefusal } from '../refusal-table.js'
import { requestIdOf } from '../request-id.js'
import { type AcceptedCredential, assertBeforeKey, type RequestState } from '../request-state.js'
import type { CheckedChoice } from './choice.js'
import { type HandlerResult, type RequestAndResponse, runHandler } from './run-handler.js'
import { CredentialRefused } from './session-credential.js'

const BY = 'acceptOneOf'

/** A request that one `acceptOneOf` decides on. */
interface AcceptContext extends RequestAndResponse {
  /** The `acceptOneOf` itself, under which the credential is stored. */
  readonly middleware: object
  readonly observers: readonly DecisionObserver[]
  /** The schemes of the challenge in a refusal: those of the service choice. */
  readonly schemes: Schemes
  readonly state: RequestState
  readonly next: NextFunction
}

/** Decides which credential is presented, before anything is verified, and has that one verified. */
export function acceptRequest(choices: readonly CheckedChoice[], context: AcceptContext): void {
  const { state, request } = context
  let presented: Decision<CheckedChoice>
  try {
    clearCredential(context)
    assertBeforeKey(state, BY)
    presented = findPresented(choices, request)
  } catch (error) {
    passError(toServiceAuthError(BY, error), context)
    return
  }
  if (presented.ok) verify(presented.value, context)
  else refuseCredential(presented, context)
}

function findPresented(
  choices: readonly CheckedChoice[],
  request: Request,
): Decision<CheckedChoice> {
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

/** Whatever this verifier decides is final: no other verifier sees the request. */
function verify(choice: CheckedChoice, context: AcceptContext): void {
  runHandler(choice.verify, context, (result) => {
    if (result.type === 'passed') accept(choice, context)
    else if (result.type === 'failed' && result.error instanceof CredentialRefused) {
      refuseCredential(result.error.denial, context, choice.name)
    } else if (result.type === 'thrown') {
      if (result.error instanceof DependencyError) reportFailure(result.error, context.observers)
      passError(toServiceAuthError(BY, result.error), context)
    } else passError(errorOf(result, `verify of ${choice.name}`), context)
  })
}

function accept(choice: CheckedChoice, context: AcceptContext): void {
  const { name, authorize } = choice
  const { middleware, state, request } = context
  try {
    const identity = readIdentity(choice, request)
    if (identity === undefined || identity === null) {
      refuseCredential(deny('identity_missing'), context, name)
      return
    }
    const credential: AcceptedCredential = Object.freeze({ name, identity })
    state.credentials ??= new Map()
    state.credentials.set(middleware, credential)
    request.credential = credential
    emit(context, () => acceptedEvent(credential, state))
  } catch (error) {
    passError(toServiceAuthError(BY, error), context)
    return
  }
  if (authorize.length === 0) context.next()
  else authorizeBy(authorize, context, name)
}

function readIdentity({ name, identity }: CheckedChoice, request: Request): unknown {
  const owner = identity(request)
  if (typeof (owner as { then?: unknown } | null | undefined)?.then !== 'function') return owner
  ignoreRejection(owner)
  throw wrongWiring(`${BY}: identity of ${name} must not be a promise`)
}

/** Runs one handler after the other, as in a route, but only `next()` without an argument continues. */
function authorizeBy(
  handlers: readonly RequestHandler[],
  context: AcceptContext,
  name: string,
): void {
  const [handler, ...others] = handlers
  if (handler === undefined) {
    context.next()
    return
  }
  runHandler(handler, context, (result) => {
    if (result.type === 'passed') authorizeBy(others, context, name)
    else passError(errorOf(result, `authorize of ${name}`), context)
  })
}

/** The error for `next`: what the handler gave to `next` or threw, unchanged, as in Express. */
const errorOf = (result: Exclude<HandlerResult, { type: 'passed' }>, handler: string): unknown =>
  result.type === 'misused' ? wrongWiring(`${BY}: ${handler} ${result.misuse}`) : result.error

function refuseCredential(denial: Denial, context: AcceptContext, credential?: string): void {
  revokeAcceptance(context)
  try {
    sendRefusal(context.response, refusalOf(denial.reason, context.schemes))
    emit(context, () => ({
      ...decisionResult(denial.reason),
      by: BY,
      ...denial.evidence,
      ...(credential !== undefined && { credential }),
    }))
  } catch (error) {
    context.next(toServiceAuthError(BY, error))
    return
  }
  if (denial.failure !== undefined) reportFailure(denial.failure, context.observers)
}

function passError(error: unknown, context: AcceptContext): void {
  revokeAcceptance(context)
  context.next(error)
}

/** Withdraws what was accepted here, so that later guards fail if an error handler continues the request. */
function revokeAcceptance(context: AcceptContext): void {
  context.state.unaccepted += 1
  clearCredential(context)
}

/** Never throws, not even if `req.credential` cannot be redefined, because nothing would catch it. */
function clearCredential({ middleware, state, request }: AcceptContext): void {
  if (state.credentials?.delete(middleware)) Reflect.deleteProperty(request, 'credential')
}

function acceptedEvent(credential: AcceptedCredential, { admission }: RequestState): DecisionEvent {
  const { name, identity } = credential
  const isService = admission !== undefined && identity === admission.identity
  return {
    outcome: 'accepted',
    by: BY,
    credential: name,
    ...(isService && factsOf(admission.identity)),
  }
}

function emit({ observers, request }: AcceptContext, event: () => DecisionEvent): void {
  if (!isObserved(observers)) return
  const requestId = requestIdOf(request)
  const id = requestId === undefined ? undefined : { requestId }
  announceDecision(observers, Object.freeze({ ...event(), ...id }))
}
