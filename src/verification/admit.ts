import { readClock } from '../base/clock.js'
import { allow, type Decision, deny } from '../base/decision/reason.js'
import type { WireHeaders } from '../base/raw-headers.js'
import type { KeySource, VerificationKey } from './key-set/key-set.js'
import { isStaticKeyId } from './key-set/usable-keys.js'
import { type Judgement, judge } from './policy/check-claims.js'
import { denialNow } from './policy/denial.js'
import type { Policy } from './policy/policy.js'
import { rememberAccepted, type TokenCacheHealth } from './token/accepted-tokens.js'
import { readBearer } from './token/bearer.js'
import { type ScreenedToken, screenToken } from './token/parse-token.js'
import { verifyToken } from './token/verify.js'

/** The policy and keys that a receiver checks tokens with. */
interface Gate {
  readonly policy: Policy
  readonly keySource: KeySource
}

/** A judgement, and the key by which the token was verified. */
interface Admitted extends Judgement {
  readonly key: VerificationKey
}

/** Decides on a request by its headers; synchronously for a cached token. */
export interface Admit {
  (headers: WireHeaders): Decision<Judgement> | Promise<Decision<Judgement>>
  /** Counters of the cache of verified tokens. */
  tokenCache(): TokenCacheHealth
}

/**
 * The whole way from the headers to an identity.
 *
 * The returned function rejects with `Unavailable` if the key set cannot be reached.
 */
export function createAdmit(policy: Policy, keySource: KeySource): Admit {
  const gate = { policy, keySource }
  const accepted = rememberAccepted<Admitted>({
    max: policy.tokenCacheMax,
    decide: (token) => admitToken(token, gate),
    holds: (admitted) => holdsNow(admitted, gate),
  })
  const admit = (headers: WireHeaders): Decision<Judgement> | Promise<Decision<Judgement>> => {
    const bearer = readBearer(headers)
    if (!bearer.ok) return bearer
    const decision = accepted.decide(bearer.value)
    // A new decision has already checked the live denylists; a cached one has not.
    return decision instanceof Promise ? decision : unlessDenied(decision, policy)
  }
  return Object.assign(admit, { tokenCache: accepted.health })
}

/** Asks the live denylists about a token that is remembered: it may have been denied since. */
function unlessDenied(decision: Decision<Admitted>, policy: Policy): Decision<Admitted> {
  if (!decision.ok) return decision
  return denialNow(decision.value.identity, policy) ?? decision
}

/** Form, key, signature, claims: the first objection decides. */
async function admitToken(token: string, gate: Gate): Promise<Decision<Admitted>> {
  const screened = screenToken(token)
  if (!screened.ok) return screened
  const allowed = allowKey(screened.value, gate)
  if (!allowed.ok) return allowed
  const verified = await verifyToken(screened.value, gate.keySource)
  if (!verified.ok) return verified
  const { key, payload } = verified.value
  const judged = judge({ keyId: key.kid, payload }, gate.policy, secondsNow(gate))
  return judged.ok ? allow({ ...judged.value, key }) : judged
}

/** A key that the policy refuses costs no verification. */
function allowKey({ kid }: ScreenedToken, { policy, keySource }: Gate): Decision<undefined> {
  const isStatic = isStaticKeyId(kid) && policy.staticKeys === 'refuse'
  if (!isStatic && !policy.denied.keys.has(kid)) return allow(undefined)
  const evidence = keySource.current(kid) === undefined ? {} : { keyId: kid }
  return deny(isStatic ? 'static_key_refused' : 'key_denied', evidence)
}

/** Whether the same judgement would be passed now, by a key that is still in the set. */
function holdsNow({ validFrom, validUntil, key }: Admitted, gate: Gate): boolean {
  const now = secondsNow(gate)
  return now >= validFrom && now < validUntil && gate.keySource.current(key.kid) === key
}

const secondsNow = ({ policy }: Gate): number => readClock(policy.clock) / 1000
