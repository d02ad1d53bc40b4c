import { readClock } from '../base/clock.js'
import type { RawHeaders } from '../base/raw-headers.js'
import { allow, type Decision, deny } from '../decision/reason.js'
import type { KeySource, VerificationKey } from '../key-set/key-set.js'
import { type Judgement, judge } from '../policy/judge.js'
import type { Policy } from '../policy/policy.js'
import { readBearer } from '../token/bearer.js'
import { type ScreenedToken, screenToken } from '../token/compact-jws.js'
import { createTokenCache, digestOf } from '../token/token-cache.js'
import { verifyToken } from '../token/verify.js'

/**
 * The whole way from the headers to an identity.
 *
 * @throws Unavailable when the key set is out of reach.
 */
export type Gate = (rawHeaders: RawHeaders) => Decision<Judgement> | Promise<Decision<Judgement>>

interface Accepted {
  readonly decision: Decision<Judgement> & { readonly ok: true }
  readonly key: VerificationKey
}

export function createGate(policy: Policy, keySource: KeySource): Gate {
  const cache = createTokenCache<Accepted>(policy.tokenCacheMax)
  const flights = new Map<string, Promise<Decision<Judgement>>>()

  const now = (): number => readClock(policy.clock) / 1000

  /** An earlier judgement that would be passed again now, by a key that is still in the set. */
  function recall(digest: string): Decision<Judgement> | undefined {
    const accepted = cache.get(digest)
    if (accepted === undefined) return undefined
    const { decision, key } = accepted
    const { validFrom, validUntil } = decision.value
    const moment = now()
    const holds = moment >= validFrom && moment < validUntil
    if (holds && keySource.current(key.kid) === key) return decision
    cache.delete(digest)
    return undefined
  }

  async function verifyAndJudge(
    screened: ScreenedToken,
    digest: string,
  ): Promise<Decision<Judgement>> {
    try {
      const verified = await verifyToken(screened, keySource)
      if (!verified.ok) return verified
      const { key, payload } = verified.value
      const decision = judge({ keyId: key.kid, payload }, policy, now())
      if (decision.ok) cache.set(digest, { decision, key }, screened.token.length)
      return decision
    } finally {
      flights.delete(digest)
    }
  }

  return (rawHeaders) => {
    const bearer = readBearer(rawHeaders)
    if (!bearer.ok) return bearer
    const digest = digestOf(bearer.value)
    const recalled = recall(digest)
    if (recalled !== undefined) return recalled
    const underWay = flights.get(digest)
    if (underWay !== undefined) return underWay
    const screened = admitKey(screenToken(bearer.value), policy, keySource)
    if (!screened.ok) return screened
    const flight = verifyAndJudge(screened.value, digest)
    flights.set(digest, flight)
    return flight
  }
}

/** The core's static keys are told by their ids (specification: signing keys). */
const STATIC_KEY_PREFIX = 's-'

/** Keys that the policy refuses cost no verification. */
function admitKey(
  screened: Decision<ScreenedToken>,
  policy: Policy,
  keySource: KeySource,
): Decision<ScreenedToken> {
  if (!screened.ok) return screened
  const { kid } = screened.value
  const isStatic = kid.startsWith(STATIC_KEY_PREFIX) && policy.staticKeys === 'refuse'
  if (!isStatic && !policy.denied.keys.has(kid)) return allow(screened.value)
  const evidence = keySource.current(kid) === undefined ? {} : { keyId: kid }
  return deny(isStatic ? 'static_key_refused' : 'key_denied', evidence)
}
