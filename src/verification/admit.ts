import { readClock } from '../base/clock.js'
import { allow, type Decision, deny } from '../base/decision/reason.js'
import { readBearer, type WireHeaders } from '../base/raw-headers.js'
import type { KeySource, VerificationKey } from './key-set/key-set.js'
import { checkClaims, type ValidIdentity } from './policy/check-claims.js'
import { denialNow } from './policy/denial.js'
import { type Policy, refusesStaticKey } from './policy/policy.js'
import { createAcceptedTokens, type TokenCacheHealth } from './token/accepted-tokens.js'
import { type ParsedToken, parseToken, verifySignature } from './token/signed-token.js'

/** The policy and keys that a receiver checks tokens with. */
interface Dependencies {
  readonly policy: Policy
  readonly keySource: KeySource
}

/** The identity in a token, and the key that verified it. */
interface Admitted extends ValidIdentity {
  readonly key: VerificationKey
}

/** Decides on a request by its headers; synchronously for a cached token. */
export interface Admit {
  (headers: WireHeaders): Decision<ValidIdentity> | Promise<Decision<ValidIdentity>>
  /** Counters of the cache of verified tokens. */
  tokenCache(): TokenCacheHealth
}

/**
 * The pipeline from the headers to an identity.
 *
 * The returned function rejects with `Unavailable` if the key set cannot be reached.
 */
export function createAdmit(policy: Policy, keySource: KeySource): Admit {
  const deps = { policy, keySource }
  const accepted = createAcceptedTokens<Admitted>({
    max: policy.tokenCacheMax,
    decide: (token) => admitToken(token, deps),
    isStillValid: (admitted) => isStillValid(admitted, deps),
  })
  const admit = (
    headers: WireHeaders,
  ): Decision<ValidIdentity> | Promise<Decision<ValidIdentity>> => {
    const bearer = readBearer(headers)
    if (!bearer.ok) return bearer
    const decision = accepted.decide(bearer.value)
    // A new decision has already checked the live denylists; a cached one has not.
    return decision instanceof Promise ? decision : unlessDenied(decision, policy)
  }
  return Object.assign(admit, { tokenCache: accepted.health })
}

/** Checks a cached token against the live denylists, because it may have been denied since. */
function unlessDenied(decision: Decision<Admitted>, policy: Policy): Decision<Admitted> {
  if (!decision.ok) return decision
  return denialNow(decision.value.identity, policy) ?? decision
}

/** Form, key, signature, claims: the first failing check decides. */
async function admitToken(token: string, deps: Dependencies): Promise<Decision<Admitted>> {
  const parsed = parseToken(token)
  if (!parsed.ok) return parsed
  if (!isOfType(parsed.value, deps.policy)) return deny('token_type_invalid')
  const keyCheck = checkKey(parsed.value, deps)
  if (!keyCheck.ok) return keyCheck
  const verified = await verifySignature(parsed.value, deps.keySource)
  if (!verified.ok) return verified
  const { key, payload } = verified.value
  const checked = checkClaims({ keyId: key.kid, payload }, deps.policy, secondsNow(deps))
  return checked.ok ? allow({ ...checked.value, key }) : checked
}

/** RFC 9068, section 4: a media type, so its case does not count and `application/` may be left out. */
const ACCESS_TOKEN_TYPE = /^(?:application\/)?at\+jwt$/i
const ANY_JWT_TYPE = /^(?:application\/)?(?:at\+)?jwt$/i

/** The core signs service tokens and others with the same `typ`, so there it says nothing. */
function isOfType({ typ }: ParsedToken, { tokens }: Policy): boolean {
  if (tokens.kind === 'service') return true
  if (tokens.accessTokenType === 'any' && typ === undefined) return true
  const accepted = tokens.accessTokenType === 'any' ? ANY_JWT_TYPE : ACCESS_TOKEN_TYPE
  return typeof typ === 'string' && accepted.test(typ)
}

/** A key that the policy refuses costs no verification. */
function checkKey({ kid }: ParsedToken, { policy, keySource }: Dependencies): Decision<undefined> {
  const isRefusedStatic = refusesStaticKey(kid, policy)
  if (!isRefusedStatic && !policy.denied.keys.has(kid)) return allow(undefined)
  const evidence = keySource.current(kid) === undefined ? {} : { keyId: kid }
  return deny(isRefusedStatic ? 'static_key_refused' : 'key_denied', evidence)
}

/** Whether the token would be accepted now, with a key that is still in the set. */
function isStillValid({ validFrom, validUntil, key }: Admitted, deps: Dependencies): boolean {
  const now = secondsNow(deps)
  return now >= validFrom && now < validUntil && deps.keySource.current(key.kid) === key
}

const secondsNow = ({ policy }: Dependencies): number => readClock(policy.clock) / 1000
