import type { Request } from 'express'
import type { DecisionObserver } from '../../base/decision/decision-event.js'
import type { Schemes } from '../../base/decision/problem.js'
import { functionOf, lazy, optionsObject, parseOptions } from '../../base/options.js'
import { type AnyRouteHandler, fitAnyRoute } from '../any-route.js'
import { type AcceptedCredential, beginState, credentialBy } from '../request-state.js'
import { acceptRequest } from './accept-request.js'
import { type AnyChoice, type CheckedChoice, type CredentialOf, parseChoices } from './choice.js'

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
  const middleware = fitAnyRoute('acceptOneOf', (request, response, next) =>
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
