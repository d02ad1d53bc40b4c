import { type KeySet, type KeySetHealth, sourceOf } from '../key-set/key-set.js'
import { remoteKeySet } from '../key-set/remote-key-set.js'
import { permissionSet, type ServiceIdentity } from '../policy/identity.js'
import type { Judgement } from '../policy/judge.js'
import type { KeySetAddress } from '../policy/key-set-address.js'
import { type Policy, parsePolicy, type ServiceAuthPolicy } from '../policy/policy.js'
import type { AnyRouteHandler } from './any-route.js'
import { createGate } from './gate.js'
import { guardHandler } from './guard.js'
import { type Admission, assertBeforeKey, stateOf } from './request-state.js'

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
  readonly keySet: KeySetHealth
}

/** The middleware that `serviceAuth` returns. */
export interface ServiceAuth extends AnyRouteHandler {
  /** Resolves once the key set has been fetched; rejects when it could not be. */
  ready(): Promise<void>
  /** The state of the key set, from memory. */
  health(): Health
  /** Stops background work, of a key set of its own only. */
  close(): void
}

/**
 * Accepts a request only from an approved service: verifies its `Authorization: Bearer` token
 * strictly and judges it by the policy (specification: receiving service verification). Refuses with
 * 401, 403 or 503, and sets `req.service` otherwise.
 *
 * @throws TypeError when the policy is incomplete, unknown in part or contradictory.
 */
export function serviceAuth(policy: ServiceAuthPolicy): ServiceAuth {
  const checked = parsePolicy(policy)
  const { keySet, close } = openKeySet(checked.keySet, checked.clock)
  const source = sourceOf(keySet)
  if (source === undefined) throw new TypeError('serviceAuth policy: keySet has no source')
  const gate = createGate(checked, source)
  const own = checked.onDecision === undefined ? [] : [checked.onDecision]
  const handler = guardHandler<Judgement>({
    by: 'serviceAuth',
    decide(request) {
      assertBeforeKey(request, 'serviceAuth')
      stateOf(request).unaccepted += 1
      return gate(request.rawHeaders)
    },
    accept(request, judgement) {
      const state = stateOf(request)
      state.unaccepted -= 1
      state.admission = admit(judgement, checked, state.admission)
      request.service = state.admission.identity
      return { caller: judgement.identity.name, keyId: judgement.identity.keyId }
    },
    observers(request) {
      const earlier = stateOf(request).admission?.observers ?? []
      return earlier.length === 0 ? own : [...new Set([...earlier, ...own])]
    },
  })
  const health = (): Health => ({ keySet: keySet.health() })
  return Object.assign(handler, { ready: () => keySet.ready(), health, close })
}

function openKeySet(
  address: KeySetAddress,
  clock: () => number,
): { keySet: KeySet; close: () => void } {
  if (address.kind === 'shared') return { keySet: address.keySet, close: () => {} }
  const { jwksUri, allowInsecureHttp } = address
  const keySet = remoteKeySet({ jwksUri, allowInsecureHttp, clock })
  return { keySet, close: () => keySet.close() }
}

/** A further `serviceAuth` on the request can take permissions away, never add any. */
function admit(judgement: Judgement, policy: Policy, earlier: Admission | undefined): Admission {
  const { clock, clockToleranceSeconds } = policy
  const observers = policy.onDecision === undefined ? [] : [policy.onDecision]
  const { identity, granted } = judgement
  if (earlier === undefined) return { identity, granted, observers, clock, clockToleranceSeconds }
  const both = granted.filter((name) => earlier.granted.includes(name))
  return {
    identity: Object.freeze({ ...identity, permissions: permissionSet(both) }),
    granted: both,
    observers: [...new Set([...earlier.observers, ...observers])],
    clock,
    clockToleranceSeconds: Math.max(clockToleranceSeconds, earlier.clockToleranceSeconds),
  }
}
