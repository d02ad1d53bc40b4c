import type { Policy } from '../../verification/policy/policy.js'
import { columns, INDENT } from '../output/columns.js'
import { formatDuration, formatTime } from '../output/format-time.js'
import { checkedClaims, type TokenVerdict } from './token-verdict.js'
import { conditionOf, type VerdictStep } from './verdict-step.js'

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
