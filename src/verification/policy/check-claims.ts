import { allow, type Decision, type Denial, deny } from '../../base/decision/reason.js'
import { isShortText } from '../../base/options.js'
import type { Proof } from '../confirmation/check-proof.js'
import { type Binding, isSupported, readConfirmation } from '../confirmation/sender-constraint.js'
import { checkDenylists } from './check-denylists.js'
import { createIdentity, permissionList, type ServiceIdentity } from './identity.js'
import type { Policy, TokenRules } from './policy.js'

/** The claims that the core signed, and the key. */
interface SignedClaims {
  readonly keyId: string
  /** The payload as parsed, without a prototype, and the JSON text that it was parsed from. */
  readonly payload: { readonly members: Claims; readonly text: string }
}

/** The caller of an accepted token, and when the token is valid. */
export interface ValidIdentity {
  readonly identity: ServiceIdentity
  /** What the request must show in addition to the token. */
  readonly binding: Binding
  /** Seconds since the epoch: the identity is valid while `validFrom <= now < validUntil`. */
  readonly validFrom: number
  readonly validUntil: number
  /** The proof that came with this request. */
  readonly proof?: Proof
}

/**
 * The decision on a token, before its binding is compared with the request. A wrong binding (401) takes precedence over
 * a 403 or 503. A denial without `binding` is final.
 */
export type ClaimsDecision<Valid = ValidIdentity> =
  | Extract<Decision<Valid>, { readonly ok: true }>
  | ClaimsDenial

/** A denial, and the binding that has to be checked before it. */
export type ClaimsDenial = Denial & { readonly binding?: Binding }

/**
 * Checks the claims of a verified token against the policy: the registered claims (RFC 7519, section 4.1)
 * and those of its kind of tokens. `now` is in seconds since the epoch. The checks that end in a 401 come
 * before those that end in a 403.
 */
export function checkClaims(token: SignedClaims, policy: Policy, now: number): ClaimsDecision {
  const { keyId, payload } = token
  const read = readClaims(payload.members, policy)
  if (!read.ok) return withKeyId(read, keyId)
  const claims = read.value
  const timeError = timeDenial(claims, policy, now)
  if (timeError !== undefined) return withKeyId(timeError, keyId)
  const { caller, tokenId, iat, exp, binding } = claims
  const denial = checkDenylists({ name: caller, keyId, tokenId, issuedAt: iat }, policy)
  if (denial !== undefined) return { ...denial, binding }
  const granted = grantedTo(caller, claims.permissions, policy)
  if (!granted.ok) {
    return { ...deny(granted.reason, { ...granted.evidence, caller, keyId }), binding }
  }
  const { issuer, audience } = policy
  const identity = createIdentity({
    name: caller,
    permissions: granted.value,
    issuer,
    audience,
    tokenId,
    issuedAt: iat,
    expiresAt: exp,
    keyId,
    binding,
    payload: payload.text,
  })
  return { ok: true, value: { identity, binding, ...validity(claims, policy) } }
}

const withKeyId = (denial: Denial, keyId: string): Denial =>
  deny(denial.reason, { ...denial.evidence, keyId })

interface ReadClaims {
  readonly caller: string
  readonly permissions: readonly string[]
  readonly exp: number
  readonly iat: number | undefined
  readonly nbf: number | undefined
  readonly tokenId: string | undefined
  readonly binding: Binding
}

type Claims = Readonly<Record<string, unknown>>

function readClaims(claims: Claims, policy: Policy): Decision<ReadClaims> {
  const { sub, exp, iat, nbf, jti } = claims
  const denial = mismatch(claims, 'iss', policy.issuer) ?? kindDenial(claims, policy)
  if (denial !== undefined) return denial
  if (typeof sub !== 'string' || sub === '') return claimDenial('sub', sub)
  const permissionsClaim = permissionsClaimOf(policy.tokens)
  const permissions = permissionsIn(claims[permissionsClaim], policy.tokens)
  if (permissions === undefined) return claimDenial(permissionsClaim, claims[permissionsClaim])
  if (!isFiniteNumber(exp)) return claimDenial('exp', exp)
  if (iat !== undefined && !isFiniteNumber(iat)) return claimDenial('iat', iat)
  if (nbf !== undefined && !isFiniteNumber(nbf)) return claimDenial('nbf', nbf)
  if (jti !== undefined && !isShortText(jti)) return claimDenial('jti', jti)
  const binding = bindingOf(claims, policy)
  if (typeof binding === 'object' && 'reason' in binding) return binding
  return allow({ caller: sub, permissions, exp, iat, nbf, tokenId: jti, binding })
}

/** Refuses a binding that the receiver cannot check: whoever has stolen the token could use it. */
function bindingOf(claims: Claims, { senderConstraint }: Policy): Binding | Denial {
  if (!Object.hasOwn(claims, 'cnf')) {
    return senderConstraint.required ? deny('confirmation_missing', { claim: 'cnf' }) : 'none'
  }
  const confirmation = readConfirmation(claims['cnf'])
  if (confirmation !== undefined && isSupported(confirmation, senderConstraint)) return confirmation
  return deny('confirmation_unsupported', { claim: 'cnf' })
}

/** Checks the audience, and the claims that identify the kind of token that the policy requires. */
function kindDenial(claims: Claims, { audience, tokens }: Policy): Denial | undefined {
  if (tokens.kind === 'service') {
    return (
      mismatch(claims, 'aud', audience) ??
      mismatch(claims, 'source', tokens.source) ??
      mismatch(claims, 'token_type', tokens.tokenType)
    )
  }
  const { aud } = claims
  const isForReceiver = aud === audience || (isStringList(aud) && aud.includes(audience))
  if (!isForReceiver) return claimDenial('aud', aud)
  return tokens.accessTokenType === 'any' ? otherTokenDenial(claims) : undefined
}

/** Claims of ID tokens and logout tokens (OpenID Connect Core, Back-Channel Logout). */
const OTHER_TOKENS_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events']
/** Keycloak's claim `typ`. */
const OTHER_TOKENS_TYPES: readonly unknown[] = ['ID', 'Refresh', 'Logout']

/** Without `at+jwt` nothing proves that a token is an access token; these claims prove that it is not one. */
function otherTokenDenial(claims: Claims): Denial | undefined {
  const claim = OTHER_TOKENS_TYPES.includes(claims['typ'])
    ? 'typ'
    : OTHER_TOKENS_CLAIMS.find((name) => Object.hasOwn(claims, name))
  return claim === undefined ? undefined : deny('id_token', { claim })
}

/** The claim that lists the token's permissions. */
export const permissionsClaimOf = (tokens: TokenRules): string =>
  tokens.kind === 'service' ? 'permissions' : tokens.permissionsClaim

/** The permissions in a claim; `undefined` if the claim has a wrong type. */
function permissionsIn(value: unknown, tokens: TokenRules): readonly string[] | undefined {
  if (tokens.kind === 'oauth2') {
    const { permissionsClaim } = tokens
    if (value === undefined) return []
    const isSpaceSeparated = permissionsClaim === 'scope' || permissionsClaim === 'scp'
    // RFC 6749, section 3.3: names separated by spaces.
    if (isSpaceSeparated && typeof value === 'string')
      return value.split(' ').filter((name) => name !== '')
    if (permissionsClaim === 'scope') return undefined
  }
  return isStringList(value) ? value : undefined
}

const mismatch = (claims: Claims, claim: string, expected: string): Denial | undefined =>
  claims[claim] === expected ? undefined : claimDenial(claim, claims[claim])

const claimDenial = (claim: string, value: unknown): Denial =>
  deny(value === undefined ? 'claim_missing' : 'claim_invalid', { claim })

const isFiniteNumber = (value: unknown): value is number => Number.isFinite(value)

const isStringList = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((member) => typeof member === 'string')

function timeDenial(
  { exp, iat, nbf }: ReadClaims,
  policy: Policy,
  now: number,
): Denial | undefined {
  const tolerance = policy.clockToleranceSeconds
  if (now >= exp + tolerance) return deny('token_expired', { claim: 'exp' })
  if (nbf !== undefined && nbf > now + tolerance)
    return deny('token_not_yet_valid', { claim: 'nbf' })
  if (iat !== undefined && iat > now + tolerance)
    return deny('token_not_yet_valid', { claim: 'iat' })
  // Without `iat`, or with one that only the tolerance allows, the lifetime begins now.
  const lifetime = exp - Math.min(iat ?? now, now)
  if (lifetime > policy.maxLifetimeSeconds + tolerance) {
    return deny('token_lifetime_too_long', { claim: 'exp' })
  }
  return undefined
}

/** Returns the token's permissions, limited to the caller's ceiling. */
function grantedTo(
  caller: string,
  permissions: readonly string[],
  policy: Policy,
): Decision<readonly string[]> {
  if (!policy.ceilings.has(caller)) return deny('caller_not_approved', { claim: 'sub' })
  const ceiling = policy.ceilings.get(caller)
  const granted = ceiling === undefined ? permissions : permissions.filter((p) => ceiling.has(p))
  const missing = policy.permissions.find((name) => !granted.includes(name))
  return missing === undefined
    ? allow(permissionList(granted))
    : deny('permission_missing', { permission: missing })
}

/**
 * `nbf`, `iat` and the longest lifetime get the clock tolerance, as in `timeDenial`. `exp` does not:
 * between `exp` and the end of its tolerance every request is checked again.
 */
function validity(
  { exp, iat, nbf }: ReadClaims,
  policy: Policy,
): Pick<ValidIdentity, 'validFrom' | 'validUntil'> {
  const earliest = Math.max(nbf ?? -Infinity, iat ?? -Infinity, exp - policy.maxLifetimeSeconds)
  return { validFrom: earliest - policy.clockToleranceSeconds, validUntil: exp }
}
