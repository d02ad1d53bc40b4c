import { type Denial, deny, type Reason } from '../../base/decision/reason.js'
import { Unavailable } from '../../base/decision/service-auth-error.js'
import { decisionResult } from '../../middleware/refusal-table.js'
import {
  type Admit,
  createAdmit,
  createAdmitByIssuer,
  createVerifier,
  type TokenVerifier,
} from '../../verification/admit.js'
import type { KeySource } from '../../verification/key-set/key-set.js'
import { permissionsClaimOf } from '../../verification/policy/check-claims.js'
import type { Policy, TokenRules } from '../../verification/policy/policy.js'
import { parseToken, withPayload } from '../../verification/token/signed-token.js'
import { columns, INDENT } from '../output/columns.js'
import { formatDuration, formatTime } from '../output/format-time.js'

/** A part of a receiver's decision on a token. */
interface Step {
  readonly requirement: string
  /** Why a token is refused here. */
  readonly reasons: readonly Reason[]
}

/** The steps of a decision, in order. */
const STEPS: Readonly<Record<string, Step>> = {
  credential: {
    requirement: 'there is one Authorization header, with Bearer or DPoP and a token',
    reasons: [
      'credentials_missing',
      'authorization_repeated',
      'authorization_malformed',
      'token_too_long',
    ],
  },
  form: {
    requirement: 'a JWT with RS256, a key id, and no parameter that changes how it is read',
    reasons: [
      'token_malformed',
      'algorithm_not_allowed',
      'key_id_invalid',
      'header_parameter_forbidden',
    ],
  },
  typ: {
    requirement: 'the policy accepts the typ of the header',
    reasons: ['token_type_invalid'],
  },
  key: {
    requirement: 'the key is in the key set, and the policy allows it',
    reasons: [
      'static_key_refused',
      'key_denied',
      'key_unknown',
      'key_not_looked_up',
      'key_set_unavailable',
    ],
  },
  signature: { requirement: 'the signature is from this key', reasons: ['signature_invalid'] },
  claims: {
    requirement: 'the claims are what the policy requires; of several policies, iss chooses one',
    reasons: [
      'claim_missing',
      'claim_invalid',
      'id_token',
      'confirmation_missing',
      'confirmation_unsupported',
    ],
  },
  times: {
    requirement: 'the token is valid now, and its lifetime is short enough',
    reasons: ['token_expired', 'token_not_yet_valid', 'token_lifetime_too_long'],
  },
  proof: {
    requirement: 'the proof is by the key of the token, and for this method, URL, time and token',
    reasons: ['proof_invalid'],
  },
  denylist: {
    requirement: "the policy's denylist denies neither the token nor its caller",
    reasons: ['token_denied', 'token_issued_too_early', 'caller_denied', 'denylist_unavailable'],
  },
  caller: { requirement: 'the caller is approved', reasons: ['caller_not_approved'] },
  permissions: {
    requirement: 'the token grants the permissions that the policy requires',
    reasons: ['permission_missing'],
  },
}

/** With several policies, these steps choose the one that decides. */
const CHOOSING_STEPS = ['credential', 'form', 'claims']

/** A receiver's decision on a token. JSON-serialisable. */
export interface TokenVerdict {
  /** Only with several policies: issuer and kind of tokens of the policy that decided. */
  readonly issuer?: string
  readonly tokens?: TokenRules['kind']
  readonly outcome: 'accepted' | 'refused' | 'undecided'
  readonly reason?: Reason
  /** The HTTP status that the caller gets. */
  readonly status?: number
  readonly steps: readonly { readonly step: string; readonly result: VerdictStepResult }[]
  /** The claims that a policy checks, once the signature is verified. */
  readonly claims?: Readonly<Record<string, unknown>>
  /** The permission that the policy requires and the token does not grant. */
  readonly missingPermission?: string
  /** The claim that is missing or wrong, or shows that the token is no access token. */
  readonly claim?: string
  /** The member of the proof that is missing or wrong. */
  readonly member?: string
}

type VerdictStepResult = 'passed' | 'failed' | 'not_reached'

/**
 * The claims that a policy checks, with the exact value that it requires of some. Other claims may hold private data.
 */
const checkedClaims = ({
  issuer,
  audience,
  tokens,
}: Policy): Readonly<Record<string, string | undefined>> => ({
  iss: issuer,
  aud: audience,
  ...(tokens.kind === 'service' && { source: tokens.source, token_type: tokens.tokenType }),
  sub: undefined,
  [permissionsClaimOf(tokens)]: undefined,
  exp: undefined,
  iat: undefined,
  nbf: undefined,
  jti: undefined,
  cnf: undefined,
})

/** A proof of possession, and the request that it came with. */
export interface GivenProof {
  readonly proof: string
  readonly method: string
  /** The request target. */
  readonly url: string
}

const SCHEME = /^(?:bearer|dpop) /i

/** A policy, and the keys of its issuer. */
interface CheckedPolicy {
  readonly policy: Policy
  readonly keySource: KeySource
}

/** The verdict on a token, and the policy that made it: `undefined` if the token is for none of several. */
export interface CheckedToken {
  readonly verdict: TokenVerdict
  readonly policy: Policy | undefined
}

/**
 * Returns the decision of a `serviceAuth` with these policies on a token, and the step that made it. `text` is the
 * token, with or without its scheme. Without a proof, its binding is not checked: there is no request.
 */
export async function checkToken(
  text: string,
  policies: readonly CheckedPolicy[],
  proof?: GivenProof,
): Promise<CheckedToken> {
  const token = text.replace(SCHEME, '')
  const { denial, chosen } = await decide(token, policies, proof)
  const policy = chosen?.policy
  const steps = Object.keys(STEPS).filter((step) =>
    policy === undefined ? CHOOSING_STEPS.includes(step) : step !== 'proof' || proof !== undefined,
  )
  const failedIndex = denial === undefined ? steps.length : steps.indexOf(stepOf(denial))
  const { permission, claim, member } = denial?.evidence ?? {}
  const isVerified = policy !== undefined && failedIndex > steps.indexOf('signature')
  const verdict: TokenVerdict = {
    ...(policies.length > 1 &&
      policy !== undefined && { issuer: policy.issuer, tokens: policy.tokens.kind }),
    ...(denial === undefined ? { outcome: 'accepted' } : decisionResult(denial.reason)),
    steps: steps.map((step, index) => ({ step, result: resultAt(index, failedIndex) })),
    ...(isVerified && { claims: claimsOf(token, policy) }),
    ...(permission !== undefined && { missingPermission: permission }),
    ...(claim !== undefined && { claim }),
    ...(member !== undefined && { member }),
  }
  return { verdict, policy }
}

function resultAt(index: number, failedIndex: number): VerdictStepResult {
  if (index === failedIndex) return 'failed'
  return index < failedIndex ? 'passed' : 'not_reached'
}

/** @throws TypeError for the reason of a middleware that the doctor does not run. */
function stepOf({ reason }: Denial): string {
  const found = Object.entries(STEPS).find(([, { reasons }]) => reasons.includes(reason))
  if (found === undefined) throw new TypeError(`${reason} is decided by another guard`)
  return found[0]
}

/** Returns why the token is refused, if it is, and the policy that decided. */
async function decide(
  token: string,
  policies: readonly CheckedPolicy[],
  given: GivenProof | undefined,
) {
  const verifiers = policies.map(({ policy, keySource }): TokenVerifier => {
    const verifier = createVerifier(policy, keySource)
    return given === undefined ? { ...verifier, confirm: (decision) => decision } : verifier
  })
  const [only, another] = verifiers
  let chosen = another === undefined ? policies[0] : undefined
  const admit: Admit =
    only !== undefined && another === undefined
      ? createAdmit(only)
      : (headers, senderOf) =>
          createAdmitByIssuer(verifiers)(headers, senderOf, (verifier) => {
            chosen = policies[verifiers.indexOf(verifier)]
          })
  const rawHeaders =
    given === undefined
      ? ['Authorization', `Bearer ${token}`]
      : ['Authorization', `DPoP ${token}`, 'DPoP', given.proof]
  try {
    const decision = await admit({ rawHeaders, headers: {} }, (headers) => ({
      headers,
      certificate: () => undefined,
      target: () => given ?? { method: '', url: '' },
    }))
    return { denial: decision.ok ? undefined : decision, chosen }
  } catch (error) {
    if (!(error instanceof Unavailable) || error.what !== 'key_set') throw error
    return { denial: deny('key_set_unavailable'), chosen }
  }
}

/** Returns the claims of a verified token that its policy checks. */
function claimsOf(token: string, policy: Policy): Record<string, unknown> {
  const parsed = parseToken(token)
  const read = parsed.ok ? withPayload(parsed.value) : parsed
  const members = read.ok ? read.value.payload.members : {}
  const checked = Object.keys(checkedClaims(policy)).filter((claim) => members[claim] !== undefined)
  return Object.fromEntries(checked.map((claim) => [claim, members[claim]]))
}

const MAX_CLAIM_LENGTH = 200
/** A receiver may still refuse an accepted token for one of these reasons. */
const NOT_CHECKED = `${INDENT}not checked: a live denylist (see service-auth denylist) and earlier use of the token`

const BINDING_NOT_CHECKED = `${INDENT}not checked: its binding (cnf), which a request must show`

/** Whether the token is bound to a certificate or a key, and no proof was given to check that. */
const isUnproved = ({ claims, steps }: TokenVerdict): boolean =>
  claims?.['cnf'] !== undefined && !steps.some(({ step }) => step === 'proof')

export function verdictLines(decided: CheckedToken | undefined, nowMs: number): string[] {
  if (decided === undefined) return []
  const { verdict, policy } = decided
  const { issuer, tokens, outcome, reason, status, steps, claims } = verdict
  const by = issuer === undefined ? '' : ` by the policy of ${issuer} for ${tokens} tokens`
  const detail = verdict.missingPermission ?? verdict.claim ?? verdict.member
  const shown = detail === undefined ? '' : ` (${detail})`
  const why = reason === undefined ? '' : `: ${reason}${shown}, the caller gets ${status}`
  const results = { passed: 'passed', failed: 'FAILED', not_reached: '-' }
  return [
    '',
    `Token ${outcome}${by}${why}`,
    ...(outcome === 'accepted' ? [NOT_CHECKED] : []),
    ...(outcome === 'accepted' && isUnproved(verdict) ? [BINDING_NOT_CHECKED] : []),
    ...columns(
      steps.map(({ step, result }) => [step, results[result], STEPS[step]?.requirement ?? '']),
      INDENT,
    ),
    ...(claims === undefined || policy === undefined
      ? []
      : ['', 'Verified claims', ...claimLines(claims, policy, nowMs)]),
  ]
}

function claimLines(
  claims: Readonly<Record<string, unknown>>,
  policy: Policy,
  nowMs: number,
): string[] {
  const rows = Object.entries(checkedClaims(policy)).map(([claim, required]) => {
    const value = claims[claim]
    const shown = value === undefined ? 'missing' : JSON.stringify(value).slice(0, MAX_CLAIM_LENGTH)
    if (claim === 'sub' && typeof value === 'string' && !policy.ceilings.has(value)) {
      return [claim, shown, 'callers of the policy do not include it']
    }
    // Only access tokens of OAuth 2.0 may have a list of audiences.
    const values = claim === 'aud' && policy.tokens.kind === 'oauth2' ? [value].flat() : [value]
    const isOther = required !== undefined && !values.includes(required)
    return [
      claim,
      shown,
      isOther ? `the policy requires ${JSON.stringify(required)}` : timeOf(value, nowMs),
    ]
  })
  return columns(rows, INDENT)
}

function timeOf(value: unknown, nowMs: number): string {
  if (typeof value !== 'number') return ''
  const seconds = nowMs / 1000 - value
  const apart = formatDuration(Math.abs(seconds))
  return `${formatTime(value)}, ${seconds < 0 ? `in ${apart}` : `${apart} ago`}`
}
