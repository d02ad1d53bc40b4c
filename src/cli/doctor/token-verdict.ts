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

/**
 * Returns the decision of `admit` on a token, and the step that made it. `text` is the token, with or without
 * its scheme. Without a proof, the binding of the token is not checked: there is no request.
 */
export async function checkToken(
  text: string,
  policy: Policy,
  keySource: KeySource,
  proof?: GivenProof,
): Promise<TokenVerdict> {
  const token = text.replace(SCHEME, '')
  const admit = createAdmit(verifierFor({ policy, keySource }, proof))
  const denial = await denialBy(admit, token, proof)
  const all = stepsOf(policy, proof)
  const failedIndex = denial === undefined ? all.length : all.indexOf(stepOf(denial))
  const isVerified = failedIndex > all.indexOf('payload')
  const { permission, claim, member } = denial?.evidence ?? {}
  return {
    ...(denial === undefined ? { outcome: 'accepted' } : decisionResult(denial.reason)),
    steps: all.map((step, index) => ({ step, result: resultAt(index, failedIndex) })),
    ...(isVerified && { claims: await claimsOf(token, policy, keySource) }),
    ...(permission !== undefined && { missingPermission: permission }),
    ...(denial?.reason === 'id_token' && claim !== undefined && { claim }),
    ...(member !== undefined && { member }),
  }
}

/** A policy, and the keys of its issuer. */
interface CheckedPolicy {
  readonly policy: Policy
  readonly keySource: KeySource
}

function verifierFor(
  { policy, keySource }: CheckedPolicy,
  proof: GivenProof | undefined,
): TokenVerifier {
  const verifier = createVerifier(policy, keySource)
  return proof === undefined ? { ...verifier, confirm: (decision) => decision } : verifier
}

/** With several policies, these steps choose the policy that decides. */
const CHOOSING_STEPS: readonly VerdictStep[] = ['bearer', 'header', 'payload', 'iss']

/** Returns the decision of a `serviceAuth` with several policies, and the policy that made it. */
export async function checkTokenByIssuer(
  text: string,
  policies: readonly CheckedPolicy[],
  proof?: GivenProof,
): Promise<{ readonly verdict: TokenVerdict; readonly policy: Policy | undefined }> {
  const token = text.replace(SCHEME, '')
  const verifiers = policies.map((each) => verifierFor(each, proof))
  const choices: (CheckedPolicy | undefined)[] = []
  const admit = createAdmitByIssuer(verifiers)
  const admitChoosing: Admit = (headers, senderOf) =>
    admit(headers, senderOf, (verifier) => choices.push(policies[verifiers.indexOf(verifier)]))
  const denial = await denialBy(admitChoosing, token, proof)
  const [chosen] = choices
  if (chosen !== undefined) {
    const { policy, keySource } = chosen
    const verdict = await checkToken(text, policy, keySource, proof)
    const { issuer, tokens } = policy
    return { verdict: { issuer, tokens: tokens.kind, ...verdict }, policy }
  }
  if (denial === undefined) throw new TypeError('no policy accepts a token without being chosen')
  const isWellFormed = parseToken(token).ok
  const step = denial.reason === 'token_malformed' && isWellFormed ? 'payload' : stepOf(denial)
  const failedIndex = CHOOSING_STEPS.indexOf(step)
  const steps = CHOOSING_STEPS.map((name, index) => ({
    step: name,
    result: resultAt(index, failedIndex),
  }))
  return { verdict: { ...decisionResult(denial.reason), steps }, policy: undefined }
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

/** Returns the claims of a verified token; an empty object for any other token. */
async function claimsOf(
  token: string,
  policy: Policy,
  keySource: KeySource,
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

/** `policy` is `undefined` if the token is for none of several policies. */
export function verdictLines(
  verdict: TokenVerdict | undefined,
  policy: Policy | undefined,
  nowMs: number,
): string[] {
  if (verdict === undefined) return []
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
