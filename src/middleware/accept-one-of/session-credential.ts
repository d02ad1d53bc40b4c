import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { z } from 'zod'
import { type Denial, deny } from '../../base/decision/reason.js'
import { ServiceAuthError } from '../../base/decision/service-auth-error.js'
import {
  functionOf,
  hasFunctions,
  lazy,
  nonEmptyString,
  optionsObject,
  parseOptions,
} from '../../base/options.js'
import { findSession } from '../../verification/credential/find-session.js'
import { catchUp, checkKeyDenylists } from '../../verification/policy/check-denylists.js'
import {
  type DenylistOption,
  type Denylists,
  denylistOption,
} from '../../verification/policy/denylist-option.js'
import { type AnyRouteHandler, fitAnyRoute } from '../any-route.js'
import { startPolling } from '../service-auth.js'
import type { NoPromise } from './choice.js'

/** The default type of a session's identity. */
export interface FrontendSession {
  /** The handle of the session, the same as long as it lives. */
  getHandle(): string
}

/** A verifier of sessions: an Express handler that calls `next()` for a good one. */
export type SessionVerifier<Session> = (
  request: Request & { session?: Session },
  response: Response,
  next: NextFunction,
) => unknown

/** Options of `sessionCredential`. */
export interface SessionCredentialOptions<Session> {
  /** The name of the cookie. Default: `sAccessToken`. */
  readonly cookie?: string | undefined
  /** Returns the accepted session. Default: `request.session`, if it has a function `getHandle`. */
  readonly identity?: ((request: Request) => Session) | undefined
  /**
   * Refuses sessions whose tokens were signed by a denied key, before they are verified. Its other entries
   * concern service tokens only. While a live denylist (`redisDenylist`) cannot be read, sessions get a 503.
   */
  readonly denylist?: DenylistOption | undefined
  /** The `issuer` of the entries that a live denylist is checked for. */
  readonly issuer?: string | undefined
}

/** An element of the list that `acceptOneOf` takes, without its `name`. */
export interface SessionCredential<Session> {
  /** Whether the request carries a session, valid or not. */
  presented(request: Request): boolean
  /** Refuses what can be refused without the verifier, then calls the verifier. */
  readonly verify: AnyRouteHandler
  /** Returns the accepted session. */
  identity(request: Request): Session
}

/** RFC 6265, section 4.1.1; some cookie parsers would decode a percent sign. */
const COOKIE_NAME = /^[!#$&'*+.^_`|~0-9A-Za-z-]+$/

const schema = lazy(() =>
  optionsObject({
    cookie: z
      .string({ error: 'must be the name of a cookie' })
      .regex(COOKIE_NAME, { error: 'must be the name of a cookie' })
      .default('sAccessToken'),
    identity: functionOf<(request: Request) => never>().optional(),
    denylist: denylistOption().prefault({}),
    issuer: nonEmptyString().optional(),
  }),
)

/**
 * A frontend's session, for `acceptOneOf`: a bearer token whose header has the member `version`, or the cookie.
 * Responds with a 401 (`invalid_token`), without calling `verify`, if the request has the cookie and an `Authorization`
 * header, if parsers may read its cookies differently, or if the cookie does not contain a session token.
 *
 * @throws TypeError if an option is unknown or of the wrong type, or a live denylist has no issuer.
 *
 * @example
 * ```ts
 * import { acceptOneOf, sessionCredential } from 'express-service-auth'
 * import { verifySession } from 'supertokens-node/recipe/session/framework/express'
 *
 * const guard = acceptOneOf([{ name: 'user', ...sessionCredential(verifySession()) }])
 * ```
 */
export function sessionCredential<Session extends NoPromise = FrontendSession>(
  verify: SessionVerifier<Session>,
  options: SessionCredentialOptions<Session> = {},
): SessionCredential<Session> {
  if (typeof verify !== 'function') {
    throw new TypeError('sessionCredential: must be given a verifier of sessions')
  }
  const settings = parseOptions('sessionCredential options', schema, options)
  const { cookie, identity = sessionOf, denylist, issuer } = settings
  if (issuer === undefined && denylist.liveDenylists.length > 0) {
    throw new TypeError('sessionCredential options: issuer is required with a live denylist')
  }
  const denylists = { ...denylist, issuer: issuer ?? '' }
  for (const live of denylists.liveDenylists) startPolling(live, denylists.issuer)
  const decide: RequestHandler = (request, response, next) => {
    const denial = objectionTo(request, cookie, denylists)
    if (denial !== undefined) return next(new CredentialRefused(denial))
    return verify(request, response, next) as ReturnType<RequestHandler>
  }
  return {
    presented: (request) => findSession(request, cookie).type !== 'absent',
    verify: fitAnyRoute('sessionCredential', (request, response, next) => {
      const waiting = catchUp(denylists)
      if (waiting === undefined) return decide(request, response, next)
      return waiting.then(() => decide(request, response, next))
    }),
    identity: identity as (request: Request) => Session,
  }
}

/**
 * Makes `acceptOneOf` refuse the request if a verifier of this package passes it to `next`. Anywhere else it is an
 * error of the wiring.
 */
export class CredentialRefused extends ServiceAuthError {
  readonly denial: Denial

  constructor(denial: Denial) {
    super('wrong_wiring', 'the verify of sessionCredential is used outside acceptOneOf')
    this.denial = denial
  }
}

interface IssuersDenylists extends Denylists {
  readonly issuer: string
}

/** The reason to refuse a session before its token is verified; `undefined` if there is none. */
function objectionTo(
  request: Request,
  cookie: string,
  denylists: IssuersDenylists,
): Denial | undefined {
  const session = findSession(request, cookie)
  if (session.type === 'refused') return deny(session.reason)
  if (session.type === 'absent') return deny('session_token_malformed')
  const isAnyKeyDenied = denylists.denied.keys.size > 0 || denylists.liveDenylists.length > 0
  if (!isAnyKeyDenied) return undefined
  const { kid } = session.header
  // Without `kid`, a denied key could not be recognised.
  if (typeof kid !== 'string') return deny('session_token_malformed')
  return checkKeyDenylists(kid, denylists)
}

function sessionOf(request: Request): unknown {
  const { session } = request as { session?: unknown }
  return hasFunctions(session, ['getHandle']) ? session : undefined
}
