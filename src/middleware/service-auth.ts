import type { Request } from 'express'
import { dependencyOf } from '../base/decision/dependency.js'
import { ignoreRejection } from '../base/decision/observers.js'
import type { Schemes } from '../base/decision/problem.js'
import { ServiceAuthError, Unavailable } from '../base/decision/service-auth-error.js'
import {
  createAdmit,
  createAdmitByIssuer,
  createVerifier,
  type TokenCacheHealth,
  type TokenVerifier,
} from '../verification/admit.js'
import { peerCertificate } from '../verification/confirmation/check-certificate.js'
import type { Sender } from '../verification/confirmation/sender-constraint.js'
import type { DenylistHealth, LiveDenylist } from '../verification/denylist/live-denylist.js'
import {
  type KeySet,
  type KeySetHealth,
  keySetAddressOf,
  keySourceOf,
  withKeySetAddress,
} from '../verification/key-set/key-set.js'
import { remoteKeySet } from '../verification/key-set/remote-key-set.js'
import type { ValidIdentity } from '../verification/policy/check-claims.js'
import {
  permissionsOf,
  type ServiceIdentity,
  withPermissions,
} from '../verification/policy/identity.js'
import {
  type KeySetAddress,
  type Policy,
  parsePolicies,
  parsePolicy,
} from '../verification/policy/policy.js'
import type { OAuth2Policy, ServiceAuthPolicy } from '../verification/policy/policy-options.js'
import type { AnyRouteHandler } from './any-route.js'
import { type AdmitByTerms, type Authenticate, createAuthenticate } from './authenticate.js'
import { admittingHandler } from './guard.js'
import type { Admission, Terms } from './request-state.js'

declare global {
  namespace Express {
    interface Request {
      /** The caller, once a `serviceAuth` has accepted the request. */
      service?: ServiceIdentity
    }
  }
}

/** The state of what a `serviceAuth` depends on. JSON-serialisable. */
export interface Health {
  /** The key set of the policy. */
  readonly keySet: KeySetHealth
  /** The live denylists of the policy, in its order; not there when it has none. */
  readonly denylists?: readonly DenylistHealth[]
  /** Not there with `tokenCache: false`. */
  readonly tokenCache?: TokenCacheHealth
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
  /** Stops the background work of its own key sets. Shared key sets and denylists keep running. */
  close(): void
}

/** The middleware that `serviceAuth` returns for one policy. */
export interface ServiceAuth extends ServiceAuthMiddleware {
  /** The state of the key set, the live denylists and the token cache, from memory. */
  health(): Health
}

/** The middleware that `serviceAuth` returns for several policies. */
export interface MultiIssuerAuth extends ServiceAuthMiddleware {
  /** The state of each policy, in the order of the policies, from memory. */
  health(): MultiIssuerHealth
}

/** The state of what several policies depend on. JSON-serialisable. */
export interface MultiIssuerHealth {
  /** One for each policy, in the order of the policies. */
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
 * @throws TypeError if a policy is faulty, or two accept the same tokens.
 */
export function serviceAuth(policies: readonly AnyPolicy[]): MultiIssuerAuth
/**
 * Accepts a request only from an approved service: verifies its `Authorization: Bearer` token, with
 * `senderConstraint.dpop` also `Authorization: DPoP`, strictly (RFC 6750, RFC 7519, RFC 8725, RFC 9449), and checks
 * it against the policy. Responds with 401, 403 or 503, or sets `req.service`.
 *
 * @throws TypeError if the policy is incomplete or contradictory, or has an unknown option.
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
  if (isList(input)) return severalIssuers(input)
  const policy = parsePolicy(input)
  const opened = openPolicy(policy, schemesOf([policy]), input)
  const { terms, ready, health, close } = opened
  const admit = createAdmit(opened.verifier)
  const middleware = middlewareOf(terms, (headers, senderOf) => admit(headers, senderOf))
  const auth = Object.assign(middleware, { ready, health, close })
  serviceAuths.set(auth, terms.schemes)
  return withKeySetAddress(auth, keySetAddressOf(opened.keySet))
}

const isList = (input: AnyPolicy | readonly AnyPolicy[]): input is readonly AnyPolicy[] =>
  Array.isArray(input)

function severalIssuers(inputs: readonly AnyPolicy[]): MultiIssuerAuth {
  const policies = parsePolicies(inputs)
  const schemes = schemesOf(policies)
  const opened = policies.map((policy, index) =>
    openPolicy(policy, schemes, inputs[index] ?? policy),
  )
  const admit = createAdmitByIssuer(opened.map(({ verifier }) => verifier))
  const termsOf = new Map(opened.map(({ verifier, terms }) => [verifier, terms]))
  // A refusal before a policy is chosen is reported to the observers of all policies.
  const observers = [...new Set(opened.flatMap(({ terms }) => terms.observers))]
  const clock = Date.now
  const termsOfNone = { observers, dependencies: [], clock, clockToleranceSeconds: 0, schemes }
  const middleware = middlewareOf(termsOfNone, (headers, senderOf, choose) =>
    admit(headers, senderOf, (verifier) => choose(termsOf.get(verifier) ?? termsOfNone)),
  )
  const auth = Object.assign(middleware, {
    async ready() {
      await Promise.all(opened.map(readyByIssuer))
    },
    health: () => ({
      policies: opened.map(({ verifier, keySet, health }) =>
        withKeySetAddress({ issuer: verifier.policy.issuer, ...health() }, keySetAddressOf(keySet)),
      ),
    }),
    close() {
      for (const each of opened) each.close()
    },
  })
  serviceAuths.set(auth, schemes)
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

/**
 * The schemes that callers can use, the same for all policies: a refusal must not show which issuers are
 * known.
 */
function schemesOf(policies: readonly Policy[]): Schemes {
  const constraints = policies.map(({ senderConstraint }) => senderConstraint)
  if (constraints.every(({ dpop }) => dpop === undefined)) return 'Bearer'
  const requireProofs = constraints.every(({ mtls, required }) => required && mtls === undefined)
  return requireProofs ? 'DPoP' : 'Bearer, DPoP'
}

/** A policy with its key set and the verifier of its tokens. */
interface OpenPolicy {
  readonly verifier: TokenVerifier
  readonly keySet: KeySet
  readonly terms: Terms
  ready(): Promise<void>
  health(): Health
  close(): void
}

/**
 * Opens the key set of a policy, and starts to poll its live denylists. `input` is the policy as the app wrote it. If
 * the app opens it twice, there are two key sets, but their failures cause one warning.
 */
function openPolicy(policy: Policy, schemes: Schemes, input: object): OpenPolicy {
  const { keySet, close } = openKeySet(policy.keySet, policy.clock)
  const source = keySourceOf(keySet)
  if (source === undefined) throw new TypeError('serviceAuth policy: keySet has no source')
  const { issuer, liveDenylists, clock, clockToleranceSeconds, onDecision } = policy
  const verifier = createVerifier(policy, source)
  for (const denylist of liveDenylists) startPolling(denylist, issuer)
  return {
    verifier,
    keySet,
    terms: {
      observers: onDecision === undefined ? [] : [onDecision],
      dependencies: [
        dependencyOf('key_set', policy.keySet.kind === 'shared' ? keySet : input),
        ...liveDenylists.map((denylist) => dependencyOf('denylist', denylist)),
      ],
      clock,
      clockToleranceSeconds,
      schemes,
    },
    async ready() {
      await Promise.all([keySet.ready(), ...liveDenylists.map(denylistReady)])
    },
    health: () => ({
      keySet: keySet.health(),
      ...(liveDenylists.length > 0 && { denylists: liveDenylists.map((each) => each.health()) }),
      ...(policy.tokenCacheMax > 0 && { tokenCache: verifier.tokenCache() }),
    }),
    close,
  }
}

function openKeySet(
  address: KeySetAddress,
  clock: () => number,
): { keySet: KeySet; close: () => void } {
  if (address.kind === 'shared') return { keySet: address.keySet, close: () => {} }
  const { kind: _, ...options } = address
  const keySet = remoteKeySet({ ...options, clock })
  return { keySet, close: () => keySet.close() }
}

/**
 * Calls the denylist before the first request, because it may begin to poll at its first call. The result of the call,
 * or its failure, is ignored.
 */
export function startPolling(denylist: LiveDenylist, issuer: string): void {
  try {
    ignoreRejection(denylist.lists(issuer))
  } catch {}
}

/** @throws ServiceAuthError `'unfit'` if the denylist rejects with it, otherwise `'unavailable'`. */
async function denylistReady(denylist: LiveDenylist): Promise<void> {
  try {
    await denylist.ready()
  } catch (error) {
    const isServiceAuthError = error instanceof ServiceAuthError
    if (isServiceAuthError && (error.code === 'unavailable' || error.code === 'unfit')) throw error
    throw new Unavailable('denylist', 'a live denylist of the policy is not ready', {
      cause: error,
    })
  }
}

/** What `serviceAuth` has returned, and the schemes of its challenges. */
const serviceAuths = new WeakMap<object, Schemes>()

/** The schemes in which a `serviceAuth` challenges; `undefined` for anything else. */
export const challengeSchemesOf = (value: object): Schemes | undefined => serviceAuths.get(value)

/** Whether it is what `serviceAuth` has returned. */
export const isServiceAuth = (value: unknown): value is ServiceAuth | MultiIssuerAuth =>
  typeof value === 'function' && serviceAuths.has(value)

/** `terms` apply until `admit` has called `choose` with those of a policy. */
function middlewareOf(
  terms: Terms,
  admit: AdmitByTerms,
): AnyRouteHandler & { authenticate: Authenticate } {
  const handler = admittingHandler<ValidIdentity>({
    by: 'serviceAuth',
    decide(state) {
      state.unaccepted += 1
      state.terms = terms
      return admit(state.request, senderOf, (chosen) => {
        state.terms = chosen
      })
    },
    accept(admitted, state) {
      state.unaccepted -= 1
      state.admission = admissionBy(admitted, state.terms ?? terms, state.admission)
      state.request.service = state.admission.identity
    },
    observers({ admission, terms: { observers } = terms }) {
      const earlier = admission?.observers ?? observers
      return earlier === observers ? observers : [...new Set([...earlier, ...observers])]
    },
    dependencies: ({ terms: { dependencies } = terms }) => dependencies,
    schemes: () => terms.schemes,
  })
  return Object.assign(handler, { authenticate: createAuthenticate(terms, admit) })
}

/** The parts of an Express request that a bound token must match. */
const senderOf = (request: Request): Sender => ({
  certificate: (mtls) => (mtls === true ? peerCertificate(request.socket) : mtls(request)),
  headers: request,
  target: () => ({ method: request.method, url: request.originalUrl }),
})

/** A further `serviceAuth` on the request can take permissions away, never add any. */
function admissionBy(
  { identity, proof }: ValidIdentity,
  { observers, clock, clockToleranceSeconds, schemes }: Terms,
  earlier: Admission | undefined,
): Admission {
  if (earlier === undefined) {
    return { identity, proof, observers, clock, clockToleranceSeconds, schemes }
  }
  const held = permissionsOf(earlier.identity)
  const both = permissionsOf(identity).filter((name) => held.includes(name))
  return {
    identity: withPermissions(identity, Object.freeze(both)),
    proof,
    observers: [...new Set([...earlier.observers, ...observers])],
    clock,
    clockToleranceSeconds: Math.max(clockToleranceSeconds, earlier.clockToleranceSeconds),
    schemes,
  }
}
