import { readClock } from '../base/clock.js'
import { functionOf, optionsObject, parseOptions, storeWith } from '../base/options.js'
import type { DecisionObserver } from '../decision/event.js'
import { allow, type Decision, deny } from '../decision/reason.js'
import { consumeToken, type SingleUseStore } from '../replay/single-use.js'
import type { AnyRouteHandler } from './any-route.js'
import { guardHandler } from './guard.js'
import type { Admission } from './request-state.js'

/** Options of `requireSingleUse`. */
export interface SingleUseOptions {
  /** Where consumed tokens are remembered; all instances of the receiver must share it. */
  readonly store: SingleUseStore
  /** Told of every decision of this middleware. */
  readonly onDecision?: DecisionObserver | undefined
}

const schema = optionsObject({
  store: storeWith<SingleUseStore>(['consume']),
  onDecision: functionOf<DecisionObserver>().optional(),
})

/**
 * Lets a token pass once, on every instance that shares the store: 401 without a `jti` of 1 to 256
 * characters and for a replay, 503 when the store fails. Needs a `serviceAuth` before it.
 *
 * @throws TypeError when an option is unknown or of the wrong type.
 */
export function requireSingleUse(options: SingleUseOptions): AnyRouteHandler {
  const { store, onDecision } = parseOptions('requireSingleUse options', schema, options)
  return guardHandler<void>({
    by: 'requireSingleUse',
    decide({ admission, consumedIn }) {
      return consumedIn?.has(store) ? allow(undefined) : consume(admission, store)
    },
    accept(_value, state) {
      state.consumedIn ??= new Set()
      state.consumedIn.add(store)
    },
    observers({ admission: { observers } }) {
      if (onDecision === undefined || observers.includes(onDecision)) return observers
      return [...observers, onDecision]
    },
  })
}

async function consume(admission: Admission, store: SingleUseStore): Promise<Decision<void>> {
  const { identity, clock, clockToleranceSeconds } = admission
  const { issuer, name: caller, keyId } = identity
  // Own properties only: an inherited `tokenId` does not come from the token.
  const tokenId = Object.hasOwn(identity, 'tokenId') ? identity.tokenId : undefined
  const acceptableUntil = identity.expiresAt + clockToleranceSeconds
  const now = readClock(clock) / 1000
  const decision = await consumeToken({ issuer, caller, tokenId, acceptableUntil }, store, now)
  return decision.ok
    ? allow(undefined)
    : deny(decision.reason, { ...decision.evidence, caller, keyId })
}
