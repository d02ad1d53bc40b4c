import { announceDecision, isObserved } from '../base/decision/decision-event.js'
import { type Dependency, DependencyError, dependencyOf } from '../base/decision/dependency.js'
import type { Schemes } from '../base/decision/problem.js'
import {
  allow,
  type Decision,
  type Reason,
  type RefusalReason,
  type UndecidedReason,
} from '../base/decision/reason.js'
import {
  toServiceAuthError,
  Unavailable,
  wrongWiring,
} from '../base/decision/service-auth-error.js'
import { hasFunctions, isObject } from '../base/options.js'
import type { WireHeaders } from '../base/raw-headers.js'
import type { SingleUseStore } from '../idempotency/single-use.js'
import type { Admit } from '../verification/admit.js'
import { isDer } from '../verification/confirmation/check-certificate.js'
import type { Sender } from '../verification/confirmation/sender-constraint.js'
import type { ValidIdentity } from '../verification/policy/check-claims.js'
import type { ServiceIdentity } from '../verification/policy/identity.js'
import { eventOf, reportFailure, undecided } from './guard.js'
import { type HeadersInput, requestIdIn, wireHeaders } from './headers-input.js'
import { decisionResult, refusalOf } from './refusal-table.js'
import type { Terms } from './request-state.js'
import { requireEach } from './require-permissions.js'
import { consumeOnce } from './require-single-use.js'

/** What `authenticate` requires beyond the policy. */
export interface AuthenticateOptions {
  /** Permissions that the caller must hold, as with `requirePermissions`. Default: none. */
  readonly permissions?: string | readonly string[] | undefined
  /** The store that consumes the token, as with `requireSingleUse`, after the check of permissions. Default: none. */
  readonly singleUse?: SingleUseStore | undefined
  /**
   * The client's certificate in DER, for tokens that are bound to one. It counts whatever
   * `senderConstraint.mtls` of the policy is. Default: none.
   */
  readonly certificate?: Uint8Array | undefined
  /** The method of the request, for tokens that are bound to a key (DPoP). */
  readonly method?: string | undefined
  /** Its path with query as sent, or its URL, of which only the path counts: also for such tokens. */
  readonly url?: string | undefined
}

/** The decision on a request. Frozen. */
export type Authentication =
  | { readonly outcome: 'accepted'; readonly service: ServiceIdentity }
  | (RefusedAnswer & {
      readonly outcome: 'refused'
      readonly status: 401 | 403
      /** For operators only: do not send it to the caller. */
      readonly reason: RefusalReason
    })
  | (RefusedAnswer & {
      readonly outcome: 'undecided'
      readonly status: 503
      /** For operators only: do not send it to the caller. */
      readonly reason: UndecidedReason
    })

/** The rest of the response to send. */
interface RefusedAnswer {
  /** By lower-case name, without `content-length`. */
  readonly headers: Readonly<Record<string, string>>
  /** Not for the response to a HEAD request. */
  readonly body: string
}

/**
 * Decides on a request like the middleware and the guards behind it, without Express: same checks, order,
 * responses and events (`by: 'authenticate'`, one event a call).
 *
 * @throws ServiceAuthError (as a rejection) `wrong_wiring` for an unknown option or a wrong input, which
 * includes a token that is bound to a key without `method` and `url`, and
 * `internal` if a store or a clock fails. Never rejects because of what a caller sends.
 */
export type Authenticate = (
  headers: HeadersInput,
  options?: AuthenticateOptions,
) => Promise<Authentication>

/** Decides on a request, and calls `choose` with the terms of the policy that decides. */
export type AdmitByTerms = <Headers extends WireHeaders>(
  headers: Headers,
  senderOf: (headers: Headers) => Sender,
  choose: (terms: Terms) => void,
) => ReturnType<Admit>

/** `terms` apply until `admit` has called `choose` with those of a policy. */
export function createAuthenticate(terms: Terms, admit: AdmitByTerms): Authenticate {
  return async function authenticate(headers, options = {}) {
    let chosen = terms
    const stores: Dependency[] = []
    let decision: Decision<ServiceIdentity>
    try {
      const requirements = parseRequirements(options)
      const { singleUse } = requirements
      if (singleUse !== undefined) stores.push(dependencyOf('store', singleUse))
      const admitted = await admit(
        wireHeaders(headers),
        (wire) => givenSender(wire, requirements),
        (termsOfPolicy) => {
          chosen = termsOfPolicy
        },
      )
      decision = admitted.ok ? await requireAll(admitted.value, requirements, chosen) : admitted
    } catch (error) {
      if (error instanceof DependencyError) reportFailure(error, chosen.observers)
      if (!(error instanceof Unavailable)) throw toServiceAuthError('authenticate', error)
      decision = undecided(error, [...chosen.dependencies, ...stores])
    }
    const { observers } = chosen
    if (isObserved(observers)) {
      const identity = decision.ok ? decision.value : undefined
      const requestId = requestIdIn(headers)
      announceDecision(observers, eventOf('authenticate', decision, identity, requestId))
    }
    if (!decision.ok) {
      if (decision.failure !== undefined) reportFailure(decision.failure, observers)
      return answerTo(decision.reason, terms.schemes)
    }
    return Object.freeze({ outcome: 'accepted', service: decision.value })
  }
}

interface Requirements {
  readonly permissions: readonly string[]
  readonly singleUse: SingleUseStore | undefined
  readonly certificate: Uint8Array | undefined
  readonly method: string | undefined
  readonly url: string | undefined
}

/** The parts of a request that a bound token must match, as far as the app has given them. */
const givenSender = (headers: WireHeaders, { certificate, method, url }: Requirements): Sender => ({
  headers,
  certificate: () => certificate,
  target() {
    if (method !== undefined && url !== undefined) return { method, url }
    throw wrongWiring('authenticate: a token that is bound to a key needs method and url')
  },
})

async function requireAll(
  { identity, proof }: ValidIdentity,
  { permissions, singleUse }: Requirements,
  { clock, clockToleranceSeconds }: Terms,
): Promise<Decision<ServiceIdentity>> {
  const permitted = requireEach(permissions, identity)
  if (!permitted.ok) return permitted
  if (singleUse === undefined) return allow(identity)
  const consumed = await consumeOnce({ identity, proof, clock, clockToleranceSeconds }, singleUse)
  return consumed.ok ? allow(identity) : consumed
}

function answerTo(reason: Reason, schemes: Schemes): Authentication {
  const { headers, body } = refusalOf(reason, schemes)
  const sent = headers
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(([name]) => name !== 'content-length')
  return Object.freeze({
    ...decisionResult(reason),
    headers: Object.freeze(Object.fromEntries(sent)),
    body,
  }) as Authentication
}

const OPTIONS: readonly string[] = ['permissions', 'singleUse', 'certificate', 'method', 'url']

/** The beginning of every request target that Node accepts. One without a path is the caller's fault, not the app's. */
const TARGET = /^(?:[/*]|[a-z][a-z\d+.-]*:\/\/)/i

/** @throws ServiceAuthError `wrong_wiring`. */
function parseRequirements(options: AuthenticateOptions): Requirements {
  if (!isObject(options)) throw wrongWiring('authenticate: the options must be an object')
  for (const name of Object.keys(options)) {
    if (!OPTIONS.includes(name)) throw wrongWiring(`authenticate: ${name} is not an option`)
  }
  const { permissions, singleUse, certificate, method, url } = options as AuthenticateOptions
  if (singleUse !== undefined && !hasFunctions(singleUse, ['consume'])) {
    throw wrongWiring('authenticate: singleUse must be a store with consume')
  }
  if (certificate !== undefined && !isDer(certificate)) {
    throw wrongWiring('authenticate: certificate must be the client certificate in DER')
  }
  if (method !== undefined && !isNonEmptyString(method)) {
    throw wrongWiring('authenticate: method must be a non-empty string')
  }
  if (url !== undefined && !(isNonEmptyString(url) && TARGET.test(url))) {
    throw wrongWiring('authenticate: url must be a path with query, or an absolute URL')
  }
  // The app may change the bytes while a decision is awaited.
  const der = certificate?.slice()
  return { permissions: namesIn(permissions), singleUse, certificate: der, method, url }
}

const isNonEmptyString = (value: unknown): value is string =>
  typeof value === 'string' && value !== ''

/** A copy, in which a hole of the list is `undefined`. */
function namesIn(permissions: unknown): readonly string[] {
  if (permissions === undefined) return []
  const names: unknown[] = Array.isArray(permissions) ? Array.from(permissions) : [permissions]
  const areNames = names.every((name): name is string => typeof name === 'string' && name !== '')
  if (areNames && names.length > 0) return names
  throw wrongWiring(
    'authenticate: permissions must be a non-empty string, or a list of at least one',
  )
}
