import { dependencyOf } from '../base/decision/dependency.js'
import { ignoreRejection } from '../base/decision/observers.js'
import type { Schemes } from '../base/decision/problem.js'
import { ServiceAuthError, Unavailable } from '../base/decision/service-auth-error.js'
import { createVerifier, type TokenCacheHealth, type TokenVerifier } from '../verification/admit.js'
import type { DenylistHealth, LiveDenylist } from '../verification/denylist/live-denylist.js'
import { type KeySet, type KeySetHealth, keySourceOf } from '../verification/key-set/key-set.js'
import { remoteKeySet } from '../verification/key-set/remote-key-set.js'
import type { KeySetAddress, Policy } from '../verification/policy/policy.js'
import type { Terms } from './request-state.js'

/** The state of what a `serviceAuth` depends on. JSON-serialisable. */
export interface Health {
  /** The key set of the policy. */
  readonly keySet: KeySetHealth
  /** The live denylists of the policy, in its order; not there when it has none. */
  readonly denylists?: readonly DenylistHealth[]
  /** Not there with `tokenCache: false`. */
  readonly tokenCache?: TokenCacheHealth
}

/** A policy with its key set and the verifier of its tokens. */
export interface OpenPolicy {
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
export function openPolicy(policy: Policy, schemes: Schemes, input: object): OpenPolicy {
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
