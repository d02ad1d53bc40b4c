import { createAdmit } from '../verification/admit.js'
import type { DenylistHealth } from '../verification/denylist/live-denylist.js'
import { addressOf, withAddress } from '../verification/key-set/address.js'
import { type KeySet, type KeySetHealth, sourceOf } from '../verification/key-set/key-set.js'
import { remoteKeySet } from '../verification/key-set/remote-key-set.js'
import type { ValidIdentity } from '../verification/policy/check-claims.js'
import type { ServiceIdentity } from '../verification/policy/identity.js'
import type { KeySetAddress } from '../verification/policy/key-set-address.js'
import { permissionSet } from '../verification/policy/permission-set.js'
import { parsePolicy } from '../verification/policy/policy.js'
import type { OAuth2Policy, ServiceAuthPolicy } from '../verification/policy/policy-options.js'
import type { TokenCacheHealth } from '../verification/token/accepted-tokens.js'
import type { AnyRouteHandler } from './any-route.js'
import { type Authenticate, createAuthenticate } from './authenticate.js'
import { admittingHandler } from './guard.js'
import { denylistReady, startPolling } from './live-denylists.js'
import type { Admission } from './request-state.js'

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

/** The middleware that `serviceAuth` returns. */
export interface ServiceAuth extends AnyRouteHandler {
  /**
   * Resolves once the key set has been fetched and the live denylists are ready. Rejects with a
   * `ServiceAuthError` of the code `'unavailable'` as soon as one of them could not be; a later call
   * tries again.
   */
  ready(): Promise<void>
  /** Decides on a request without Express. */
  readonly authenticate: Authenticate
  /** The state of the key set, the live denylists and the token cache, from memory. */
  health(): Health
  /** Stops background work, of a key set of its own only: no shared key set, and no denylist. */
  close(): void
}

/**
 * Accepts a request only from an approved service: verifies its `Authorization: Bearer` token
 * strictly (RFC 6750, RFC 7519, RFC 8725) and judges it by the policy. Refuses with 401, 403 or 503,
 * and sets `req.service` otherwise.
 *
 * @throws TypeError when the policy is incomplete, unknown in part or contradictory.
 */
export function serviceAuth(policy: ServiceAuthPolicy | OAuth2Policy): ServiceAuth {
  const checked = parsePolicy(policy)
  const { keySet, close } = openKeySet(checked.keySet, checked.clock)
  const source = sourceOf(keySet)
  if (source === undefined) throw new TypeError('serviceAuth policy: keySet has no source')
  const admit = createAdmit(checked, source)
  const { clock, clockToleranceSeconds, onDecision, liveDenylists } = checked
  const own = onDecision === undefined ? [] : [onDecision]
  const terms: Terms = { observers: own, clock, clockToleranceSeconds }
  for (const denylist of liveDenylists) startPolling(denylist, checked.issuer)
  const handler = admittingHandler<ValidIdentity>({
    by: 'serviceAuth',
    decide(state) {
      state.unaccepted += 1
      return admit(state.request)
    },
    accept(judgement, state) {
      state.unaccepted -= 1
      state.admission = admissionBy(judgement, terms, state.admission)
      state.request.service = state.admission.identity
    },
    observers({ admission }) {
      const earlier = admission?.observers ?? own
      return earlier === own ? own : [...new Set([...earlier, ...own])]
    },
  })
  const ready = async (): Promise<void> => {
    await Promise.all([keySet.ready(), ...liveDenylists.map(denylistReady)])
  }
  const health = (): Health => ({
    keySet: keySet.health(),
    ...(liveDenylists.length > 0 && { denylists: liveDenylists.map((each) => each.health()) }),
    ...(checked.tokenCacheMax > 0 && { tokenCache: admit.tokenCache() }),
  })
  const authenticate = createAuthenticate({ admit, observers: own, clock, clockToleranceSeconds })
  const auth = Object.assign(handler, { authenticate, ready, health, close })
  serviceAuths.add(auth)
  return withAddress(auth, addressOf(keySet))
}

const serviceAuths = new WeakSet<object>()

/** Whether it is what `serviceAuth` has returned. */
export const isServiceAuth = (value: unknown): value is ServiceAuth =>
  typeof value === 'function' && serviceAuths.has(value)

function openKeySet(
  address: KeySetAddress,
  clock: () => number,
): { keySet: KeySet; close: () => void } {
  if (address.kind === 'shared') return { keySet: address.keySet, close: () => {} }
  const { kind: _, ...options } = address
  const keySet = remoteKeySet({ ...options, clock })
  return { keySet, close: () => keySet.close() }
}

/** The parts of a policy that later guards use. */
type Terms = Pick<Admission, 'observers' | 'clock' | 'clockToleranceSeconds'>

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
