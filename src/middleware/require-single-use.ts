import { readClock } from '../base/clock.js'
import type { DecisionObserver } from '../base/decision/decision-event.js'
import { dependencyOf } from '../base/decision/dependency.js'
import { allow, type Decision, type Denial, deny } from '../base/decision/reason.js'
import { functionOf, lazy, optionsObject, parseOptions, storeWith } from '../base/options.js'
import {
  consume,
  type SingleUseStore,
  type TokenUse,
  useOfProof,
  useOfToken,
} from '../idempotency/single-use.js'
import type { AnyRouteHandler } from './any-route.js'
import { guardHandler } from './guard.js'
import type { Admission } from './request-state.js'

/** Options of `requireSingleUse`. */
export interface SingleUseOptions {
  /** Where consumed tokens and proofs are remembered; all instances of the receiver must share it. */
  readonly store: SingleUseStore
  /** Called with every decision of this middleware. */
  readonly onDecision?: DecisionObserver | undefined
}

const schema = lazy(() =>
  optionsObject({
    store: storeWith<SingleUseStore>(['consume']),
    onDecision: functionOf<DecisionObserver>().optional(),
  }),
)

/**
 * Accepts each token once, on all instances that share the store: 401 without a `jti` of 1 to 256
 * characters and for a replay, 503 when the store fails. With a token that is bound to a key (DPoP), each proof
 * passes once, and the token may be used again. Needs a `serviceAuth` before it.
 *
 * @throws TypeError if an option is unknown or of the wrong type.
 *
 * @example
 * ```ts
 * import express from 'express'
 * import { memoryStore, requireSingleUse, serviceAuth } from 'express-service-auth'
 * import { createTestIssuer } from 'express-service-auth/testing'
 *
 * const auth = serviceAuth((await createTestIssuer()).policy())
 * const app = express().use(auth, requireSingleUse({ store: memoryStore() }))
 * ```
 */
export function requireSingleUse(options: SingleUseOptions): AnyRouteHandler {
  const { store, onDecision } = parseOptions('requireSingleUse options', schema, options)
  const dependencies = [dependencyOf('store', store)]
  return guardHandler<void>({
    by: 'requireSingleUse',
    decide({ admission, storesThatConsumed }) {
      if (storesThatConsumed?.has(store)) return allow(undefined)
      return consumeOnce(admission, store)
    },
    accept(_value, state) {
      state.storesThatConsumed ??= new Set()
      state.storesThatConsumed.add(store)
    },
    observers({ admission: { observers } }) {
      if (onDecision === undefined || observers.includes(onDecision)) return observers
      return [...observers, onDecision]
    },
    dependencies: () => dependencies,
  })
}

/** The parts of an admission by which its token, or its proof, is used. */
type Usable = Pick<Admission, 'identity' | 'proof' | 'clock' | 'clockToleranceSeconds'>

/**
 * Consumes the token of an accepted caller.
 *
 * @throws Unavailable if the store fails.
 */
export async function consumeOnce(
  admission: Usable,
  store: SingleUseStore,
): Promise<Decision<void>> {
  const use = tokenUse(admission)
  if (!use.ok) return use
  return (await consume(use.value, store)) ? allow(undefined) : tokenReplayed(admission)
}

/** A proof is for one request, while its token is reused. So the proof is used up in place of the token. */
export function tokenUse({
  identity,
  proof,
  clock,
  clockToleranceSeconds,
}: Usable): Decision<TokenUse> {
  const now = readClock(clock) / 1000
  const { issuer, name: caller, expiresAt } = identity
  // `Object.hasOwn`, because other code may have polluted `Object.prototype` with a `tokenId`.
  const tokenId = Object.hasOwn(identity, 'tokenId') ? identity.tokenId : undefined
  const acceptableUntil = expiresAt + clockToleranceSeconds
  const use =
    proof === undefined
      ? useOfToken({ issuer, caller, tokenId, acceptableUntil }, now)
      : useOfProof(proof, now)
  return use.ok ? use : deny(use.reason, { ...use.evidence, ...callerOf(identity) })
}

export const tokenReplayed = ({ identity }: Pick<Admission, 'identity'>): Denial =>
  deny('token_replayed', { claim: 'jti', ...callerOf(identity) })

const callerOf = ({ name: caller, keyId }: Admission['identity']) => ({ caller, keyId })
