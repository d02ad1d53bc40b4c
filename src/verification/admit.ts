import { LRUCache } from 'lru-cache'
import { readClock } from '../base/clock.js'
import { allow, type Decision, type Denial, deny, type Evidence } from '../base/decision/reason.js'
import {
  headerValues,
  MAX_TOKEN_LENGTH,
  type PresentedToken,
  readToken,
  type WireHeaders,
} from '../base/raw-headers.js'
import { hash } from '../base/supported-node.js'
import { checkCertificate } from './confirmation/check-certificate.js'
import { checkProof } from './confirmation/check-proof.js'
import type { Confirmation, Sender } from './confirmation/sender-constraint.js'
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

/** Counters of the cache of verified tokens since it was created. JSON-serialisable. */
export interface TokenCacheHealth {
  /** How many tokens are remembered, of at most `max`. */
  readonly entries: number
  /** `tokenCache.max` of the policy. */
  readonly max: number
  /** How many requests brought a token that was remembered. */
  readonly hits: number
  /** How many requests brought a token that had to be verified. */
  readonly misses: number
}

type AcceptedToken = Extract<ClaimsDecision<Admitted>, { readonly ok: true }>

/** Room for one entry, which takes about as many bytes as its token has. Most tokens are shorter. */
const BYTES_PER_ENTRY = 1024

export function createVerifier(policy: Policy, keySource: KeySource): TokenVerifier {
  const deps = { policy, keySource }
  const max = policy.tokenCacheMax
  const maxSize = Math.max(MAX_TOKEN_LENGTH, max * BYTES_PER_ENTRY)
  /** By digest. Refusals are not cached, because anyone could fill the memory with them. */
  const accepted = max === 0 ? undefined : new LRUCache<string, AcceptedToken>({ max, maxSize })
  const inFlight = new Map<string, Promise<ClaimsDecision<Admitted>>>()
  let hits = 0
  let misses = 0
  return {
    policy,
    recall(digest) {
      const decision = accepted?.get(digest)
      if (decision === undefined) return undefined
      if (!isStillValid(decision.value, deps)) {
        accepted?.delete(digest)
        return undefined
      }
      hits += 1
      const waiting = catchUp(policy)
      return waiting === undefined
        ? reconsider(decision, policy)
        : reconsiderAfter(waiting, decision, policy)
    },
    verify({ token, digest, parsed }) {
      misses += 1
      // Equal tokens that arrive together share one decision.
      const pending = inFlight.get(digest)
      if (pending !== undefined) return pending
      const decision = admitToken(token, deps, parsed)
      if ('ok' in decision) return decision
      inFlight.set(digest, decision)
      const settle = (settled?: ClaimsDecision<Admitted>): void => {
        inFlight.delete(digest)
        if (settled?.ok) accepted?.set(digest, settled, { size: token.length })
      }
      decision.then(settle, () => settle())
      return decision
    },
    confirm: createConfirm(policy),
    tokenCache: () => ({ entries: accepted?.size ?? 0, max, hits, misses }),
  }
}

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
    const digest = hash('sha256', token, 'binary')
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
    const digest = hash('sha256', token, 'binary')
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

/**
 * Checks on each request that it has what its token is bound to: the decision on the token may come from the cache, or
 * from another request with the same token. A wrong binding (401) takes precedence over a 403 or 503.
 */
type Confirm = <Headers extends WireHeaders>(
  decision: ClaimsDecision | Promise<ClaimsDecision>,
  presented: PresentedToken,
  headers: Headers,
  senderOf: (headers: Headers) => Sender,
) => Decision<ValidIdentity> | Promise<Decision<ValidIdentity>>

function createConfirm(policy: Policy): Confirm {
  const { mtls, dpop } = policy.senderConstraint
  // Without `mtls` and `dpop`, `checkClaims` refuses all bound tokens.
  const isUnconstrained = mtls === undefined && dpop === undefined
  return (decision, presented, headers, senderOf) => {
    if (isUnconstrained && presented.scheme === 'Bearer') return decision
    const sender = senderOf(headers)
    if ('ok' in decision) return confirmNow(decision, presented, sender)
    const currentSender = mtls === true ? withCertificate(sender) : sender
    return decision.then((settled) => confirmNow(settled, presented, currentSender))
  }

  function confirmNow(
    decision: ClaimsDecision,
    presented: PresentedToken,
    sender: Sender,
  ): Decision<ValidIdentity> | Promise<Decision<ValidIdentity>> {
    const binding = decision.ok ? decision.value.binding : decision.binding
    if (binding === undefined) return decision
    if (binding === 'none') {
      return presented.scheme === 'Bearer'
        ? decision
        : deny('confirmation_missing', keyEvidence(decision))
    }
    if (binding.kind === 'dpop') return confirmProof(decision, binding, presented, sender)
    const fault = certificateFault(presented, binding, sender)
    return fault === undefined ? decision : refuse(decision, fault)
  }

  function certificateFault(
    { scheme }: PresentedToken,
    { thumbprint }: Confirmation,
    sender: Sender,
  ) {
    return mtls === undefined || scheme === 'DPoP'
      ? 'confirmation_unsupported'
      : checkCertificate(thumbprint, mtls, sender)
  }

  function confirmProof(
    decision: ClaimsDecision,
    confirmation: Confirmation,
    { token, scheme }: PresentedToken,
    sender: Sender,
  ): Denial | Promise<Decision<ValidIdentity>> {
    if (dpop === undefined) return refuse(decision, 'confirmation_unsupported')
    if (scheme === 'Bearer') return refuse(decision, 'proof_missing')
    const target = sender.target()
    const [proof, ...more] = headerValues(sender.headers, 'dpop')
    if (proof === undefined) return refuse(decision, 'proof_missing')
    if (more.length > 0) return refuse(decision, 'proof_invalid', { member: 'field' })
    const now = readClock(policy.clock) / 1000
    const request = { token, ...target, baseUrls: dpop.baseUrls, now }
    return checkProof(proof, confirmation, request).then((checked) => {
      if (typeof checked === 'string') return refuse(decision, 'proof_invalid', { member: checked })
      return decision.ok ? { ok: true, value: { ...decision.value, proof: checked } } : decision
    })
  }
}

/** Reads the certificate now, because it is gone once the client disconnects. */
function withCertificate(sender: Sender): Sender {
  const certificate = sender.certificate(true)
  return { ...sender, certificate: () => certificate }
}

function refuse(decision: ClaimsDecision, reason: Denial['reason'], evidence?: Evidence): Denial {
  // Only the name of an accepted caller: that of a caller which is not approved could be any text.
  const caller = decision.ok ? { caller: decision.value.identity.name } : undefined
  return deny(reason, { ...caller, ...keyEvidence(decision), ...evidence })
}

function keyEvidence(decision: ClaimsDecision): Evidence {
  const { keyId } = decision.ok ? decision.value.identity : decision.evidence
  return keyId === undefined ? {} : { keyId }
}
