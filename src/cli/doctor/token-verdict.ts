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
import type { Policy, TokenRules } from '../../verification/policy/policy.js'
import { parseToken, verifySignature } from '../../verification/token/signed-token.js'
import { columns, INDENT } from '../output/columns.js'
import { formatDuration, formatTime } from '../output/format-time.js'
import { conditionOf, stepOf, stepsOf, type VerdictStep } from './verdict-step.js'

/** A receiver's decision on a token. JSON-serialisable. */
export interface TokenVerdict {
  /** Only with several policies: issuer and kind of tokens of the policy that decided. */
  readonly issuer?: string
  readonly tokens?: TokenRules['kind']
  readonly outcome: 'accepted' | 'refused' | 'undecided'
  readonly reason?: Reason
  /** The HTTP status that the caller gets. */
  readonly status?: number
  readonly steps: readonly { readonly step: VerdictStep; readonly result: VerdictStepResult }[]
  /** The claims that a policy checks, once the signature is verified. */
  readonly claims?: Readonly<Record<string, unknown>>
  /** The permission that the policy requires and the token does not grant. */
  readonly missingPermission?: string
  /** The claim that shows that the token is an ID token or another kind of token. */
  readonly claim?: string
  /** The member of the proof that is missing or wrong. */
  readonly member?: string
}

type VerdictStepResult = 'passed' | 'failed' | 'not_reached'

/** The claims that a policy checks. Other claims may hold private data. */
function checkedClaims(policy: Policy): readonly VerdictStep[] {
  const steps = stepsOf(policy)
  return steps.slice(steps.indexOf('iss'), steps.indexOf('cnf') + 1).filter(isClaim)
}

const isClaim = (step: VerdictStep): boolean => step !== 'access_token'

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

/** With several policies, these steps choose the policy that decides. */
const CHOOSING_STEPS: readonly VerdictStep[] = ['bearer', 'header', 'payload', 'iss']

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
  const steps = chosen === undefined ? CHOOSING_STEPS : stepsOf(chosen.policy, proof)
  const failedIndex =
    denial === undefined ? steps.length : steps.indexOf(failedStep(denial, token, chosen))
  const { permission, claim, member } = denial?.evidence ?? {}
  const isVerified = chosen !== undefined && failedIndex > steps.indexOf('payload')
  const verdict: TokenVerdict = {
    ...(policies.length > 1 && chosen !== undefined && nameOf(chosen.policy)),
    ...(denial === undefined ? { outcome: 'accepted' } : decisionResult(denial.reason)),
    steps: steps.map((step, index) => ({ step, result: resultAt(index, failedIndex) })),
    ...(isVerified && { claims: await claimsOf(token, chosen) }),
    ...(permission !== undefined && { missingPermission: permission }),
    ...(denial?.reason === 'id_token' && claim !== undefined && { claim }),
    ...(member !== undefined && { member }),
  }
  return { verdict, policy: chosen?.policy }
}

/** The payload chooses a policy before any key verifies it. */
function failedStep(denial: Denial, token: string, chosen: CheckedPolicy | undefined): VerdictStep {
  const isPayload = denial.reason === 'token_malformed' && parseToken(token).ok
  return chosen === undefined && isPayload ? 'payload' : stepOf(denial)
}

const nameOf = ({ issuer, tokens }: Policy) => ({ issuer, tokens: tokens.kind })

interface Decided {
  /** Absent if the token is accepted. */
  readonly denial: Denial | undefined
  readonly chosen: CheckedPolicy | undefined
}

async function decide(
  token: string,
  policies: readonly CheckedPolicy[],
  proof: GivenProof | undefined,
): Promise<Decided> {
  const verifiers = policies.map(({ policy, keySource }): TokenVerifier => {
    const verifier = createVerifier(policy, keySource)
    return proof === undefined ? { ...verifier, confirm: (decision) => decision } : verifier
  })
  const [only] = verifiers
  if (verifiers.length === 1 && only !== undefined) {
    return { denial: await denialBy(createAdmit(only), token, proof), chosen: policies[0] }
  }
  let chosen: CheckedPolicy | undefined
  const admit = createAdmitByIssuer(verifiers)
  const denial = await denialBy(
    (headers, senderOf) =>
      admit(headers, senderOf, (verifier) => {
        chosen = policies[verifiers.indexOf(verifier)]
      }),
    token,
    proof,
  )
  return { denial, chosen }
}

function resultAt(index: number, failedIndex: number): VerdictStepResult {
  if (index === failedIndex) return 'failed'
  return index < failedIndex ? 'passed' : 'not_reached'
}

async function denialBy(
  admit: Admit,
  token: string,
  given: GivenProof | undefined,
): Promise<Denial | undefined> {
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
    return decision.ok ? undefined : decision
  } catch (error) {
    if (error instanceof Unavailable && error.what === 'key_set') return deny('key_set_unavailable')
    throw error
  }
}

/** Returns the claims of a verified token. */
async function claimsOf(
  token: string,
  { policy, keySource }: CheckedPolicy,
): Promise<Record<string, unknown>> {
  const screened = parseToken(token)
  const verified = screened.ok ? await verifySignature(screened.value, keySource) : screened
  const members = verified.ok ? verified.value.payload.members : {}
  const judged = checkedClaims(policy).filter((claim) => members[claim] !== undefined)
  return Object.fromEntries(judged.map((claim) => [claim, members[claim]]))
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
      steps.map(({ step, result }) => [step, results[result], conditionOf(step, policy)]),
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
  const rows = checkedClaims(policy).map((claim) => {
    const value = claims[claim]
    const shown = value === undefined ? 'missing' : JSON.stringify(value).slice(0, MAX_CLAIM_LENGTH)
    return [claim, shown, faultOf(claim, value, policy) ?? timeOf(value, nowMs)]
  })
  return columns(rows, INDENT)
}

/** Says what the policy requires instead; `undefined` if the policy accepts the value. */
function faultOf(claim: VerdictStep, value: unknown, policy: Policy): string | undefined {
  const { issuer: iss, audience: aud, tokens, ceilings } = policy
  if (claim === 'sub' && typeof value === 'string' && !ceilings.has(value)) {
    return 'callers of the policy do not include it'
  }
  const required: { readonly [claim in VerdictStep]?: string } =
    tokens.kind === 'oauth2'
      ? { iss, aud }
      : { iss, aud, source: tokens.source, token_type: tokens.tokenType }
  const wanted = required[claim]
  if (wanted === undefined || value === wanted) return undefined
  const mayBeList = tokens.kind === 'oauth2' && claim === 'aud'
  if (mayBeList && Array.isArray(value) && value.includes(wanted)) return undefined
  return `the policy requires ${JSON.stringify(wanted)}`
}

function timeOf(value: unknown, nowMs: number): string {
  if (typeof value !== 'number') return ''
  const seconds = nowMs / 1000 - value
  const apart = formatDuration(Math.abs(seconds))
  return `${formatTime(value)}, ${seconds < 0 ? `in ${apart}` : `${apart} ago`}`
}
