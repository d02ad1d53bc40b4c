import { ServiceAuthError } from '../base/decision/service-auth-error.js'
import { createAdmit, createAdmitByIssuer } from '../verification/admit.js'
import { addressOf, withAddress } from '../verification/key-set/address.js'
import type { ValidIdentity } from '../verification/policy/check-claims.js'
import type { ServiceIdentity } from '../verification/policy/identity.js'
import { permissionSet } from '../verification/policy/permission-set.js'
import { parsePolicies, parsePolicy } from '../verification/policy/policy.js'
import type { OAuth2Policy, ServiceAuthPolicy } from '../verification/policy/policy-options.js'
import type { AnyRouteHandler } from './any-route.js'
import { type AdmitByTerms, type Authenticate, createAuthenticate } from './authenticate.js'
import { admittingHandler } from './guard.js'
import { type Health, type OpenPolicy, openPolicy } from './open-policy.js'
import type { Admission, Terms } from './request-state.js'

declare global {
  namespace Express {
    interface Request {
      /** The caller, once a `serviceAuth` has accepted the request. */
      service?: ServiceIdentity
    }
  }
}

/** What the middlewares of `serviceAuth` have in common. */
interface ServiceAuthMiddleware extends AnyRouteHandler {
  /** Decides on a request without Express. */
  readonly authenticate: Authenticate
  /**
   * Resolves once every key set has been fetched and the live denylists are ready. Rejects with a
   * `ServiceAuthError` of the code `'unavailable'` as soon as one of them could not be; a later call
   * tries again.
   */
  ready(): Promise<void>
  /** Stops background work, of key sets of its own only: no shared key set, and no denylist. */
  close(): void
}

/** The middleware that `serviceAuth` returns for one policy. */
export interface ServiceAuth extends ServiceAuthMiddleware {
  /** The state of the key set, the live denylists and the token cache, from memory. */
  health(): Health
}

/** The middleware that `serviceAuth` returns for several policies. */
export interface MultiIssuerAuth extends ServiceAuthMiddleware {
  /** The state of each policy, in their order, from memory. */
  health(): MultiIssuerHealth
}

/** The state of what several policies depend on. JSON-serialisable. */
export interface MultiIssuerHealth {
  /** One for each policy, in their order. */
  readonly policies: readonly IssuerHealth[]
}

/** The state of what a policy depends on, and its issuer. */
export interface IssuerHealth extends Health {
  /** The `issuer` of the policy. */
  readonly issuer: string
}

/** The options of `serviceAuth`, for either kind of tokens. */
type AnyPolicy = ServiceAuthPolicy | OAuth2Policy

/**
 * Accepts requests by two to eight policies: the `iss` of a token chooses the policy that decides. Two may
 * share an issuer if their `tokens` differ; then a token with `token_type` is a service token.
 *
 * @throws TypeError when a policy is faulty, or two accept the same tokens.
 */
export function serviceAuth(policies: readonly AnyPolicy[]): MultiIssuerAuth
/**
 * Accepts a request only from an approved service: verifies its `Authorization: Bearer` token
 * strictly (RFC 6750, RFC 7519, RFC 8725) and judges it by the policy. Refuses with 401, 403 or 503,
 * and sets `req.service` otherwise.
 *
 * @throws TypeError when the policy is incomplete, unknown in part or contradictory.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { serviceAuth } from 'express-service-auth'
 *
 * const auth = serviceAuth({
 *   issuer: 'https://api.example.com',
 *   audience: 'orders',
 *   source: 'microservice',
 *   tokenType: 'service-access',
 *   callers: { billing: ['orders:read'] },
 * })
 * const app = express()
 * app.get('/orders', auth, (req, res) => {
 *   res.json({ caller: req.service?.name })
 * })
 * ```
 */
export function serviceAuth(policy: AnyPolicy): ServiceAuth
export function serviceAuth(
  input: AnyPolicy | readonly AnyPolicy[],
): ServiceAuth | MultiIssuerAuth {
  if (isList(input))
    return severalIssuers(
      parsePolicies(input).map((policy, index) => openPolicy(policy, input[index] ?? policy)),
    )
  const opened = openPolicy(parsePolicy(input), input)
  const { terms, ready, health, close } = opened
  const admit = createAdmit(opened.verifier)
  const middleware = middlewareOf(terms, (headers) => admit(headers))
  const auth = Object.assign(middleware, { ready, health, close })
  serviceAuths.add(auth)
  return withAddress(auth, addressOf(opened.keySet))
}

const isList = (input: AnyPolicy | readonly AnyPolicy[]): input is readonly AnyPolicy[] =>
  Array.isArray(input)

function severalIssuers(opened: readonly OpenPolicy[]): MultiIssuerAuth {
  const admit = createAdmitByIssuer(opened.map(({ verifier }) => verifier))
  const termsOf = new Map(opened.map(({ verifier, terms }) => [verifier, terms]))
  // A refusal before a policy is chosen concerns the observers of all.
  const observers = [...new Set(opened.flatMap(({ terms }) => terms.observers))]
  const unchosen: Terms = { observers, dependencies: [], clock: Date.now, clockToleranceSeconds: 0 }
  const middleware = middlewareOf(unchosen, (headers, choose) =>
    admit(headers, (verifier) => choose(termsOf.get(verifier) ?? unchosen)),
  )
  const auth = Object.assign(middleware, {
    async ready() {
      await Promise.all(opened.map(readyByIssuer))
    },
    health: () => ({
      policies: opened.map(({ verifier, keySet, health }) =>
        withAddress({ issuer: verifier.policy.issuer, ...health() }, addressOf(keySet)),
      ),
    }),
    close() {
      for (const each of opened) each.close()
    },
  })
  serviceAuths.add(auth)
  return auth
}

async function readyByIssuer({ verifier, ready }: OpenPolicy): Promise<void> {
  try {
    await ready()
  } catch (error) {
    if (!(error instanceof ServiceAuthError)) throw error
    const message = `${verifier.policy.issuer}: ${error.message}`
    throw new ServiceAuthError(error.code, message, { cause: error })
  }
}

const serviceAuths = new WeakSet<object>()

/** Whether it is what `serviceAuth` has returned. */
export const isServiceAuth = (value: unknown): value is ServiceAuth | MultiIssuerAuth =>
  typeof value === 'function' && serviceAuths.has(value)

/** `terms` hold until `admit` has chosen others. */
function middlewareOf(
  terms: Terms,
  admit: AdmitByTerms,
): AnyRouteHandler & { authenticate: Authenticate } {
  const handler = admittingHandler<ValidIdentity>({
    by: 'serviceAuth',
    decide(state) {
      state.unaccepted += 1
      state.terms = terms
      return admit(state.request, (chosen) => {
        state.terms = chosen
      })
    },
    accept(judgement, state) {
      state.unaccepted -= 1
      state.admission = admissionBy(judgement, state.terms ?? terms, state.admission)
      state.request.service = state.admission.identity
    },
    observers({ admission, terms: { observers } = terms }) {
      const earlier = admission?.observers ?? observers
      return earlier === observers ? observers : [...new Set([...earlier, ...observers])]
    },
    dependencies: ({ terms: { dependencies } = terms }) => dependencies,
    clock: ({ terms: { clock } = terms }) => clock,
  })
  return Object.assign(handler, { authenticate: createAuthenticate(terms, admit) })
}

/** A further `serviceAuth` on the request can take permissions away, never add any. */
function admissionBy(
  { identity }: ValidIdentity,
  { observers, clock, clockToleranceSeconds }: Terms,
  earlier: Admission | undefined,
): Admission {
  if (earlier === undefined) return { identity, observers, clock, clockToleranceSeconds }
  const both = [...identity.permissions].filter((name) => earlier.identity.permissions.has(name))
  return {
    identity: Object.freeze({ ...identity, permissions: permissionSet(both) }),
    observers: [...new Set([...earlier.observers, ...observers])],
    clock,
    clockToleranceSeconds: Math.max(clockToleranceSeconds, earlier.clockToleranceSeconds),
  }
}
