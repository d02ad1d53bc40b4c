import { readClock } from '../base/clock.js'
import { allow, type Decision, deny } from '../base/decision/reason.js'
import { readToken, type WireHeaders } from '../base/raw-headers.js'
import { type Confirm, createConfirm } from './confirm.js'
import type { Sender } from './confirmation/sender-constraint.js'
import type { KeySource, VerificationKey } from './key-set/key-set.js'
import {
  type ClaimsDecision,
  type ClaimsDenial,
  checkClaims,
  type ValidIdentity,
} from './policy/check-claims.js'
import { catchUp, checkLiveDenylists } from './policy/check-denylists.js'
import { type Policy, refusesStaticKey } from './policy/policy.js'
import {
  createAcceptedTokens,
  digestToken,
  type TokenCacheHealth,
} from './token/accepted-tokens.js'
import {
  type ParsedToken,
  parseToken,
  type VerifiedToken,
  verifySignature,
  withPayload,
} from './token/signed-token.js'

/** The policy and keys that a receiver checks tokens with. */
interface Dependencies {
  readonly policy: Policy
  readonly keySource: KeySource
}

/** The identity in a token, and the key that verified it. */
interface Admitted extends ValidIdentity {
  readonly key: VerificationKey
}

/** Decides on tokens by one policy. */
export interface TokenVerifier {
  readonly policy: Policy
  /**
   * The decision on a token that was accepted earlier, by its digest; `undefined` for any other. Synchronous unless a
   * live denylist has to catch up.
   */
  recall(digest: string): ClaimsDecision | Promise<ClaimsDecision> | undefined
  /**
   * Decides on a token that was not recalled; synchronously if its signature need not be verified. Rejects
   * with `Unavailable` if the key set is unreachable.
   */
  verify(token: Token): ClaimsDenial | Promise<ClaimsDecision>
  /** Checks that the request matches the binding of its token. */
  readonly confirm: Confirm
  /** Counters of the cache of verified tokens. */
  tokenCache(): TokenCacheHealth
}

interface Token {
  readonly token: string
  readonly digest: string
  /** The parsed token, if it was parsed to choose the policy. */
  readonly parsed?: ParsedToken
}

export function createVerifier(policy: Policy, keySource: KeySource): TokenVerifier {
  const deps = { policy, keySource }
  const accepted = createAcceptedTokens<Admitted, ClaimsDenial>({
    max: policy.tokenCacheMax,
    isStillValid: (admitted) => isStillValid(admitted, deps),
  })
  return {
    policy,
    recall(digest) {
      const decision = accepted.find(digest)
      if (decision === undefined) return undefined
      const waiting = catchUp(policy)
      return waiting === undefined
        ? reconsider(decision, policy)
        : reconsiderAfter(waiting, decision, policy)
    },
    verify: ({ token, digest, parsed }) =>
      accepted.decide(token, digest, () => admitToken(token, deps, parsed)),
    confirm: createConfirm(policy),
    tokenCache: accepted.health,
  }
}

type AcceptedToken = Extract<ClaimsDecision<Admitted>, { readonly ok: true }>

/** A live denylist may have denied the token since it was accepted. `verify` checks that for new tokens. */
function reconsider(decision: AcceptedToken, policy: Policy): ClaimsDecision {
  const { identity, binding } = decision.value
  const denial = checkLiveDenylists(identity, policy)
  return denial === undefined ? decision : { ...denial, binding }
}

/** Not part of `recall`, because a closure there would cost each request. */
const reconsiderAfter = (
  waiting: Promise<unknown>,
  decision: AcceptedToken,
  policy: Policy,
): Promise<ClaimsDecision> => waiting.then(() => reconsider(decision, policy))

/**
 * Decides on a request by its headers; synchronously if no signature has to be verified. `senderOf` is called only
 * where the token may be bound.
 */
export type Admit = <Headers extends WireHeaders>(
  headers: Headers,
  senderOf: (headers: Headers) => Sender,
) => Decision<ValidIdentity> | Promise<Decision<ValidIdentity>>

/** The decision on a request by one policy. */
export function createAdmit(verifier: TokenVerifier): Admit {
  return (headers, senderOf) => {
    const presented = readToken(headers)
    if (!presented.ok) return presented
    const { token } = presented
    const digest = digestToken(token)
    const decision = verifier.recall(digest) ?? verifier.verify({ token, digest })
    return verifier.confirm(decision, presented, headers, senderOf)
  }
}

/** Called with the verifier that decides on a request, as soon as it is known. */
type OnChosen = (verifier: TokenVerifier) => void

/**
 * The decision on a request by the policy that its token's `iss` chooses (with `token_type`, if two policies have that
 * issuer). The payload serves no other purpose before that policy has verified the token.
 */
export function createAdmitByIssuer(
  verifiers: readonly TokenVerifier[],
): <Headers extends WireHeaders>(
  headers: Headers,
  senderOf: (headers: Headers) => Sender,
  onChosen: OnChosen,
) => ReturnType<Admit> {
  return (headers, senderOf, onChosen) => {
    const presented = readToken(headers)
    if (!presented.ok) return presented
    const { token } = presented
    const digest = digestToken(token)
    for (const verifier of verifiers) {
      const recalled = recallAndReport(verifier, digest, onChosen)
      if (recalled !== undefined) return verifier.confirm(recalled, presented, headers, senderOf)
    }
    const form = parseToken(token)
    const parsed = form.ok ? withPayload(form.value) : form
    if (!parsed.ok) return parsed
    const chosen = chooseByIssuer(parsed.value.payload.members, verifiers)
    if (!chosen.ok) return chosen
    onChosen(chosen.value)
    const decision = chosen.value.verify({ token, digest, parsed: parsed.value })
    return chosen.value.confirm(decision, presented, headers, senderOf)
  }
}

/** Chooses the verifier also if its live denylist throws, so that its observers get the error. */
function recallAndReport(
  verifier: TokenVerifier,
  digest: string,
  onChosen: OnChosen,
): ReturnType<TokenVerifier['recall']> {
  try {
    const recalled = verifier.recall(digest)
    if (recalled !== undefined) onChosen(verifier)
    return recalled
  } catch (error) {
    onChosen(verifier)
    throw error
  }
}

function chooseByIssuer(
  claims: Readonly<Record<string, unknown>>,
  verifiers: readonly TokenVerifier[],
): Decision<TokenVerifier> {
  const { iss } = claims
  if (iss === undefined) return deny('claim_missing', { claim: 'iss' })
  // Two policies of one issuer differ in their kind of tokens.
  const kind = Object.hasOwn(claims, 'token_type') ? 'service' : 'oauth2'
  const ofIssuer = verifiers.filter(({ policy }) => policy.issuer === iss)
  const chosen = ofIssuer.find(({ policy }) => policy.tokens.kind === kind) ?? ofIssuer[0]
  return chosen === undefined ? deny('claim_invalid', { claim: 'iss' }) : allow(chosen)
}

/** Form, key, signature, claims: the first failing check decides. */
function admitToken(
  token: string,
  deps: Dependencies,
  alreadyParsed?: ParsedToken,
): ClaimsDenial | Promise<ClaimsDecision<Admitted>> {
  const parsed = alreadyParsed === undefined ? parseToken(token) : allow(alreadyParsed)
  if (!parsed.ok) return parsed
  if (!isOfType(parsed.value, deps.policy)) return deny('token_type_invalid')
  const keyCheck = checkKey(parsed.value, deps)
  if (!keyCheck.ok) return keyCheck
  const verified = verifySignature(parsed.value, deps.keySource)
  // Not `instanceof Promise`: an app may have replaced the global.
  return 'ok' in verified ? verified : verified.then((decision) => judgeCaughtUp(decision, deps))
}

function judgeCaughtUp(
  verified: Decision<VerifiedToken>,
  deps: Dependencies,
): ReturnType<typeof judge> | Promise<ReturnType<typeof judge>> {
  const waiting = verified.ok ? catchUp(deps.policy) : undefined
  return waiting === undefined ? judge(verified, deps) : waiting.then(() => judge(verified, deps))
}

/** Checks the claims of a token whose signature has been verified. */
function judge(verified: Decision<VerifiedToken>, deps: Dependencies): ClaimsDecision<Admitted> {
  if (!verified.ok) return verified
  const { key, payload } = verified.value
  const checked = checkClaims({ keyId: key.kid, payload }, deps.policy, secondsNow(deps))
  return checked.ok ? { ok: true, value: { ...checked.value, key } } : checked
}

/** RFC 9068, section 4: a media type, so its case does not count and `application/` may be left out. */
const ACCESS_TOKEN_TYPE = /^(?:application\/)?at\+jwt$/i
const ANY_JWT_TYPE = /^(?:application\/)?(?:at\+)?jwt$/i

/** Service tokens pass, whatever their `typ`: the core gives the same one to tokens of other kinds. */
function isOfType({ typ }: ParsedToken, { tokens }: Policy): boolean {
  if (tokens.kind === 'service') return true
  if (tokens.accessTokenType === 'any' && typ === undefined) return true
  const accepted = tokens.accessTokenType === 'any' ? ANY_JWT_TYPE : ACCESS_TOKEN_TYPE
  return typeof typ === 'string' && accepted.test(typ)
}

/** Refuses a static or denied key before the signature is verified, to save that cost. */
function checkKey({ kid }: ParsedToken, { policy, keySource }: Dependencies): Decision<undefined> {
  const isRefusedStatic = refusesStaticKey(kid, policy)
  if (!isRefusedStatic && !policy.denied.keys.has(kid)) return allow(undefined)
  // A key id that is not in the set could be any text.
  const evidence = keySource.current(kid) === undefined ? {} : { keyId: kid }
  return deny(isRefusedStatic ? 'static_key_refused' : 'key_denied', evidence)
}

/** Whether the token would be accepted now, with a key that is still in the set. */
function isStillValid({ validFrom, validUntil, key }: Admitted, deps: Dependencies): boolean {
  const now = secondsNow(deps)
  return now >= validFrom && now < validUntil && deps.keySource.current(key.kid) === key
}

const secondsNow = ({ policy }: Dependencies): number => readClock(policy.clock) / 1000
