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
  const middleware = fitAnyRoute(BY, (request, response, next) => {
    const state = beginState(request)
    const context = { middleware, observers, schemes, state, request, response, next }
    acceptRequest(checked, context).catch((error) => next(toServiceAuthError(BY, error)))
  })
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

/**
 * Chooses the credential that is presented before anything is verified. What its verifier decides is final: no other
 * verifier sees the request.
 */
async function acceptRequest(
  choices: readonly CheckedChoice[],
  context: AcceptContext,
): Promise<void> {
  const { state, request, next } = context
  let name: string | undefined
  let isVerified = false
  try {
    clearCredential(context)
    assertBeforeKey(state, BY)
    const [choice, ...others] = choices.filter((each) => isPresented(each, request))
    if (choice === undefined) return refuse(deny('credentials_missing'), context)
    if (others.length > 0) return refuse(deny('credentials_ambiguous'), context)
    name = choice.name
    await runHandler(choice.verify, `verify of ${name}`, context)
    isVerified = true
    const identity = readIdentity(choice, request)
    if (identity === undefined || identity === null) {
      return refuse(deny('identity_missing'), context, name)
    }
    publish(Object.freeze({ name, identity }), context)
    for (const handler of choice.authorize) {
      await runHandler(handler, `authorize of ${name}`, context, true)
    }
    next()
  } catch (error) {
    const fault = error instanceof PassedOn ? error.value : toServiceAuthError(BY, error)
    // Only `verify` refuses, by `next`. Anywhere else it is an error of the wiring.
    const isRefusal = error instanceof PassedOn && !isVerified
    if (isRefusal && fault instanceof CredentialRefused) return refuse(fault.denial, context, name)
    if (error instanceof DependencyError) reportFailure(error, context.observers)
    revokeAcceptance(context)
    next(fault)
  }
}

function isPresented(choice: CheckedChoice, request: Request): boolean {
  const answer = choice.presented(request)
  if (typeof answer === 'boolean') return answer
  ignoreRejection(answer)
  throw wrongWiring(`${BY}: presented of ${choice.name} must return a boolean`)
}

/** An error of a handler that goes to `next` as it is. */
class PassedOn extends Error {
  readonly value: unknown

  constructor(value: unknown) {
    super('a handler has failed')
    this.value = value
  }
}

/**
 * Runs one handler, which passes the request on only by `next()` without an argument. Its first call of `next` counts,
 * once it has returned and its promise, if any, has resolved: a handler that calls `next` inside `try` does not catch
 * the errors of later handlers. If it answers and does not call `next`, nothing follows.
 *
 * @throws PassedOn with what it has called `next` with, or with what it has thrown if `passesThrown`.
 */
async function runHandler(
  handler: RequestHandler,
  name: string,
  { request, response }: AcceptContext,
  passesThrown = false,
): Promise<void> {
  const misused = (misuse: string) => wrongWiring(`${BY}: ${name} ${misuse}`)
  let next: (...args: unknown[]) => void = () => {}
  const called = new Promise<readonly unknown[]>((resolve) => {
    next = (...args) => resolve(args)
  })
  try {
    await handler(request, response, next)
  } catch (error) {
    if (!isError(error)) throw misused('has thrown something other than an error')
    throw passesThrown ? new PassedOn(error) : error
  }
  const args = await called
  if (args.length > 0) {
    const [error] = args
    if (isError(error)) throw new PassedOn(error)
    throw misused('has called next with something other than an error')
  }
  const { headersSent, writableEnded } = response
  if (headersSent || writableEnded) throw misused('has called next() after an answer had begun')
}

/** For any other value, Express continues without an error: here, or after the route or the router. */
const isError = (value: unknown): boolean =>
  Boolean(value) && value !== 'route' && value !== 'router'

function readIdentity({ name, identity }: CheckedChoice, request: Request): unknown {
  const owner = identity(request)
  if (typeof (owner as { then?: unknown } | null | undefined)?.then !== 'function') return owner
  ignoreRejection(owner)
  throw wrongWiring(`${BY}: identity of ${name} must not be a promise`)
}

function publish(credential: AcceptedCredential, context: AcceptContext): void {
  const { middleware, state, request } = context
  state.credentials ??= new Map()
  state.credentials.set(middleware, credential)
  request.credential = credential
  announce(allow(credential.identity), context, credential.name)
}

function refuse(denial: Denial, context: AcceptContext, name?: string): void {
  revokeAcceptance(context)
  sendRefusal(context.response, refusalOf(denial.reason, context.schemes))
  announce(denial, context, name)
  if (denial.failure !== undefined) reportFailure(denial.failure, context.observers)
}

/** Withdraws what was accepted here, so that later guards fail if an error handler continues the request. */
function revokeAcceptance(context: AcceptContext): void {
  context.state.unaccepted += 1
  clearCredential(context)
}

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
