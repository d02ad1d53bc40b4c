import { z } from 'zod'
import { readClock } from '../base/clock.js'
import type { DecisionObserver } from '../base/decision/decision-event.js'
import { dependencyOf } from '../base/decision/dependency.js'
import { allow, type Decision, deny } from '../base/decision/reason.js'
import {
  functionOf,
  hasFunctions,
  lazy,
  optionsObject,
  parseOptions,
  storeWith,
} from '../base/options.js'
import type { CoupledStore } from '../idempotency/coupled/coupled-store.js'
import { consumeProof, consumeToken, type SingleUseStore } from '../idempotency/single-use.js'
import type { AnyRouteHandler } from './any-route.js'
import { guardHandler } from './guard.js'
import type { Admission } from './request-state.js'

/** Options of `requireSingleUse`. */
export interface SingleUseOptions {
  /** Where consumed tokens and proofs are remembered; all instances of the receiver must share it. */
  readonly store: SingleUseStore
  /**
   * `'transaction'`, only with a coupled store (`postgresStore`): the token is consumed in the transaction of
   * the `requireIdempotencyKey` before it, which has the same store. Default: `'statement'`, on its own.
   */
  readonly within?: 'statement' | 'transaction' | undefined
  /** Called with every decision of this middleware. */
  readonly onDecision?: DecisionObserver | undefined
}

const schema = lazy(() =>
  optionsObject({
    store: storeWith<SingleUseStore>(['consume']),
    within: z
      .enum(['statement', 'transaction'], { error: "must be 'statement' or 'transaction'" })
      .default('statement'),
    onDecision: functionOf<DecisionObserver>().optional(),
  }),
)

/** Only a coupled store has a transaction to consume a token in. */
const contradictions = ({ store, within }: Readonly<Record<string, unknown>>): readonly string[] =>
  within === 'transaction' && !hasFunctions(store, ['run', 'consumeWithin'])
    ? ["within must not be 'transaction' unless store is a coupled store"]
    : []

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
  const parsed = parseOptions('requireSingleUse options', schema, options, contradictions)
  const { store, within, onDecision } = parsed
  const dependencies = [dependencyOf('store', store)]
  return guardHandler<void>({
    by: 'requireSingleUse',
    ...(within === 'transaction' && { mustFollowKeyOf: store }),
    decide({ request, admission, storesThatConsumed }) {
      if (storesThatConsumed?.has(store)) return allow(undefined)
      return consumeOnce(
        admission,
        within === 'transaction' ? inTransaction(store, request) : store,
      )
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

const inTransaction = (store: SingleUseStore, request: object): SingleUseStore => ({
  consume: (id, ttlMs) => (store as CoupledStore).consumeWithin(request, id, ttlMs),
})

/**
 * Consumes the token of an accepted caller.
 *
 * @throws Unavailable if the store fails.
 */
export async function consumeOnce(
  admission: Pick<Admission, 'identity' | 'proof' | 'clock' | 'clockToleranceSeconds'>,
  store: SingleUseStore,
): Promise<Decision<void>> {
  const { name: caller, keyId } = admission.identity
  const now = readClock(admission.clock) / 1000
  const decision = await consumeCredential(admission, store, now)
  return decision.ok
    ? allow(undefined)
    : deny(decision.reason, { ...decision.evidence, caller, keyId })
}

/** A proof is for one request, while its token is reused. So the proof is consumed in place of the token. */
function consumeCredential(
  {
    identity,
    proof,
    clockToleranceSeconds,
  }: Pick<Admission, 'identity' | 'proof' | 'clockToleranceSeconds'>,
  store: SingleUseStore,
  now: number,
): Promise<Decision<true>> {
  if (proof !== undefined) return consumeProof(proof, store, now)
  const { issuer, name: caller, expiresAt } = identity
  // `Object.hasOwn`, because other code may have polluted `Object.prototype` with a `tokenId`.
  const tokenId = Object.hasOwn(identity, 'tokenId') ? identity.tokenId : undefined
  const acceptableUntil = expiresAt + clockToleranceSeconds
  return consumeToken({ issuer, caller, tokenId, acceptableUntil }, store, now)
}
