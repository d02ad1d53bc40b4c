import type { NextFunction, Request, RequestHandler, Response } from 'express'
import {
  announceDecision,
  type DecisionObserver,
  isObserved,
} from '../../base/decision/decision-event.js'
import { DependencyError } from '../../base/decision/dependency.js'
import { ignoreRejection } from '../../base/decision/observers.js'
import type { Schemes } from '../../base/decision/problem.js'
import { allow, type Decision, type Denial, deny } from '../../base/decision/reason.js'
import { toServiceAuthError, wrongWiring } from '../../base/decision/service-auth-error.js'
import { functionOf, lazy, optionsObject, parseOptions } from '../../base/options.js'
import { type AnyRouteHandler, fitAnyRoute } from '../any-route.js'
import { eventOf, reportFailure } from '../guard.js'
import { refusalOf, sendRefusal } from '../refusal-table.js'
import { requestIdOf } from '../request-id.js'
import {
  type AcceptedCredential,
  assertBeforeKey,
  beginState,
  credentialBy,
  type RequestState,
} from '../request-state.js'
import { type AnyChoice, type CheckedChoice, type CredentialOf, parseChoices } from './choice.js'
import { CredentialRefused } from './session-credential.js'

declare global {
  namespace Express {
    interface Request {
      /** The credential that an `acceptOneOf` has accepted; `credentialOf` knows its type. */
      credential?: AcceptedCredential
    }
  }
}

/** The middleware that `acceptOneOf` returns. */
export interface AcceptOneOf<Credential> extends AnyRouteHandler {
  /**
   * The credential that this middleware has accepted, and whose it is.
   *
   * @throws ServiceAuthError if this middleware has not accepted the request.
   */
  credentialOf(request: Request): Credential
}

/** Options of `acceptOneOf`. */
export interface AcceptOneOfOptions {
  /** Called with every decision of this middleware. */
  readonly onDecision?: DecisionObserver | undefined
}

const BY = 'acceptOneOf'

const schema = lazy(() => optionsObject({ onDecision: functionOf<DecisionObserver>().optional() }))

/**
 * Accepts a request by one of several credentials, for endpoints that serve people and services. The
 * credential is chosen before anything is verified. The answer of its verifier is final, and its own
 * `authorize` follows. Without a credential the response is the 401 without a token, with several that of an
 * invalid token.
 *
 * @throws TypeError if there is no choice, two of one name, or one that is incomplete, and if an
 * option is unknown or of the wrong type.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import {
 *   acceptOneOf,
 *   requirePermissions,
 *   serviceAuth,
 *   serviceCredential,
 *   sessionCredential,
 * } from 'express-service-auth'
 * import { createTestIssuer } from 'express-service-auth/testing'
 * import { verifySession } from 'supertokens-node/recipe/session/framework/express'
 *
 * const auth = serviceAuth((await createTestIssuer()).policy())
 * const either = acceptOneOf([
 *   { name: 'service', ...serviceCredential(auth), authorize: requirePermissions('orders:read') },
 *   { name: 'user', ...sessionCredential(verifySession()) },
 * ])
 * const app = express()
 * app.get('/orders', either, (req, res) => {
 *   res.json({ by: either.credentialOf(req).name })
 * })
 * ```
 */
export function acceptOneOf<const Choices extends readonly [AnyChoice, ...AnyChoice[]]>(
  choices: Choices,
  options: AcceptOneOfOptions = {},
): AcceptOneOf<CredentialOf<Choices[number]>> {
  const checked = parseChoices(choices)
  const { onDecision } = parseOptions('acceptOneOf options', schema, options)
  const observers = onDecision === undefined ? [] : [onDecision]
  const schemes = schemesOf(checked)
  const middleware = fitAnyRoute(BY, (request, response, next) =>
    acceptRequest(checked, {
      middleware,
      observers,
      schemes,
      state: beginState(request),
      request,
      response,
      next,
    }),
  )
  const credentialOf = (request: Request) =>
    credentialBy(middleware, request) as CredentialOf<Choices[number]>
  return Object.assign(middleware, { credentialOf })
}

/** The schemes of all service choices together, because a refused caller may use any of these choices. */
function schemesOf(choices: readonly CheckedChoice[]): Schemes {
  const [first = 'Bearer', ...others] = new Set(choices.flatMap(({ schemes }) => schemes ?? []))
  return others.length === 0 ? first : 'Bearer, DPoP'
}

/** A request that one `acceptOneOf` decides on. */
interface AcceptContext {
  /** The `acceptOneOf` itself, under which the credential is stored. */
  readonly middleware: object
  readonly observers: readonly DecisionObserver[]
  /** The schemes of the challenge in a refusal: those of the service choice. */
  readonly schemes: Schemes
  readonly state: RequestState
  readonly request: Request
  readonly response: Response
  readonly next: NextFunction
}

/** Decides which credential is presented, before anything is verified, and has that one verified. */
function acceptRequest(choices: readonly CheckedChoice[], context: AcceptContext): void {
  let presented: CheckedChoice[]
  try {
    clearCredential(context)
    assertBeforeKey(context.state, BY)
    presented = choices.filter((choice) => isPresented(choice, context.request))
  } catch (error) {
    passError(toServiceAuthError(BY, error), context)
    return
  }
  const [choice, ...others] = presented
  if (choice === undefined) refuse(deny('credentials_missing'), context)
  else if (others.length > 0) refuse(deny('credentials_ambiguous'), context)
  else verify(choice, context).catch((error) => passError(toServiceAuthError(BY, error), context))
}

function isPresented(choice: CheckedChoice, request: Request): boolean {
  const answer = choice.presented(request)
  if (typeof answer === 'boolean') return answer
  ignoreRejection(answer)
  throw wrongWiring(`${BY}: presented of ${choice.name} must return a boolean`)
}

/** Whatever this verifier decides is final: no other verifier sees the request. */
async function verify(choice: CheckedChoice, context: AcceptContext): Promise<void> {
  const { name } = choice
  const result = await runHandler(choice.verify, `verify of ${name}`, context)
  if (result.type === 'passed') {
    if (accept(choice, context)) await authorizeBy(choice, context)
  } else if (result.type === 'thrown') {
    if (result.error instanceof DependencyError) reportFailure(result.error, context.observers)
    passError(toServiceAuthError(BY, result.error), context)
  } else if (result.error instanceof CredentialRefused) {
    refuse(result.error.denial, context, name)
  } else {
    passError(result.error, context)
  }
}

/** How a handler ended. A handler that answers and does not call `next` has no result, because nothing follows. */
type HandlerResult =
  /** It called `next()` without an argument. */
  | { readonly type: 'passed' }
  /** It called `next(error)`, or did something else that Express might take for a pass. */
  | { readonly type: 'failed'; readonly error: unknown }
  /** It threw, or its promise rejected. */
  | { readonly type: 'thrown'; readonly error: unknown }

/**
 * Runs one handler. Its first call of `next` counts, once it has returned and its promise, if any, has resolved: a
 * handler that calls `next` inside `try` does not catch the errors of later handlers.
 */
async function runHandler(
  handler: RequestHandler,
  name: string,
  { request, response }: AcceptContext,
): Promise<HandlerResult> {
  const misused = (misuse: string): HandlerResult => ({
    type: 'failed',
    error: wrongWiring(`${BY}: ${name} ${misuse}`),
  })
  let next: (...args: unknown[]) => void = () => {}
  const called = new Promise<readonly unknown[]>((resolve) => {
    next = (...args) => resolve(args)
  })
  try {
    await handler(request, response, next)
  } catch (error) {
    if (isError(error)) return { type: 'thrown', error }
    return misused('has thrown something other than an error')
  }
  const args = await called
  if (args.length > 0) {
    const [error] = args
    if (isError(error)) return { type: 'failed', error }
    return misused('has called next with something other than an error')
  }
  const { headersSent, writableEnded } = response
  if (headersSent || writableEnded) return misused('has called next() after an answer had begun')
  return { type: 'passed' }
}

/** For any other value, Express continues without an error: here, or after the route or the router. */
const isError = (value: unknown): boolean =>
  Boolean(value) && value !== 'route' && value !== 'router'

/** Publishes whose credential it is. Returns `false` if it is nobody's. */
function accept(choice: CheckedChoice, context: AcceptContext): boolean {
  const { name } = choice
  const { middleware, state, request } = context
  const identity = readIdentity(choice, request)
  if (identity === undefined || identity === null) {
    refuse(deny('identity_missing'), context, name)
    return false
  }
  const credential: AcceptedCredential = Object.freeze({ name, identity })
  state.credentials ??= new Map()
  state.credentials.set(middleware, credential)
  request.credential = credential
  announce(allow(identity), context, name)
  return true
}

function readIdentity({ name, identity }: CheckedChoice, request: Request): unknown {
  const owner = identity(request)
  if (typeof (owner as { then?: unknown } | null | undefined)?.then !== 'function') return owner
  ignoreRejection(owner)
  throw wrongWiring(`${BY}: identity of ${name} must not be a promise`)
}

/** Runs one handler after the other, as in a route, but only `next()` without an argument continues. */
async function authorizeBy(
  { name, authorize }: CheckedChoice,
  context: AcceptContext,
): Promise<void> {
  for (const handler of authorize) {
    const result = await runHandler(handler, `authorize of ${name}`, context)
    if (result.type !== 'passed') {
      passError(result.error, context)
      return
    }
  }
  context.next()
}

function refuse(denial: Denial, context: AcceptContext, name?: string): void {
  revokeAcceptance(context)
  try {
    sendRefusal(context.response, refusalOf(denial.reason, context.schemes))
    announce(denial, context, name)
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

/** Never throws, because nothing would catch it. */
function clearCredential({ middleware, state, request }: AcceptContext): void {
  if (state.credentials?.delete(middleware)) Reflect.deleteProperty(request, 'credential')
}

/** `name` is that of the choice, once one is presented. */
function announce(
  decision: Decision<unknown>,
  { observers, request, state: { admission } }: AcceptContext,
  name?: string,
): void {
  if (!isObserved(observers)) return
  const isService = decision.ok && decision.value === admission?.identity
  const caller = isService ? admission?.identity : undefined
  const event = eventOf(BY, decision, caller, requestIdOf(request))
  announceDecision(
    observers,
    Object.freeze({ ...event, ...(name !== undefined && { credential: name }) }),
  )
}
