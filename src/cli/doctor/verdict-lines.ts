import type { Policy } from '../../verification/policy/policy.js'
import { columns } from '../output/columns.js'
import { formatDuration, formatTime } from '../output/format-time.js'
import { checkedClaims, type TokenVerdict } from './token-verdict.js'
import { conditionOf } from './verdict-step.js'

const INDENT = '  '
const MAX_CLAIM_LENGTH = 200
/** A receiver may still refuse an accepted token for one of these reasons. */
const NOT_CHECKED = `${INDENT}not checked: a live denylist (see service-auth denylist) and earlier use of the token`

const BINDING_NOT_CHECKED = `${INDENT}not checked: its binding (cnf), which a request must show`

/** Whether the token is bound, and nothing was given to check that by. */
const isUnproved = ({ claims, steps }: TokenVerdict): boolean =>
  claims?.['cnf'] !== undefined && !steps.some(({ step }) => step === 'proof')

/** `policy` is `undefined` if the token has chosen none of several. */
export function verdictLines(
  verdict: TokenVerdict | undefined,
  policy: Policy | undefined,
  nowMs: number,
): string[] {
  if (verdict === undefined) return []
  const { issuer, outcome, reason, status, steps, claims, missingPermission, member } = verdict
  const detail = missingPermission ?? member
  const missing = detail === undefined ? '' : ` (${detail})`
  const why = reason === undefined ? '' : `: ${reason}${missing}, the caller gets ${status}`
  const results = { passed: 'passed', failed: 'FAILED', not_reached: '-' }
  return [
    '',
    `Token ${outcome}${issuer === undefined ? '' : ` by the policy of ${issuer}`}${why}`,
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
  const { issuer: iss, audience: aud, tokens } = policy
  const demanded: Readonly<Record<string, string>> =
    tokens.kind === 'oauth2'
      ? { iss, aud }
      : { iss, aud, source: tokens.source, token_type: tokens.tokenType }
  const rows = checkedClaims(policy).map((claim) => {
    const value = claims[claim]
    const shown = value === undefined ? 'missing' : JSON.stringify(value).slice(0, MAX_CLAIM_LENGTH)
    return [claim, shown, noteOn(value, demanded[claim], nowMs)]
  })
  return columns(rows, INDENT)
}

function noteOn(value: unknown, demanded: string | undefined, nowMs: number): string {
  const isDemanded = value === demanded || (Array.isArray(value) && value.includes(demanded))
  if (demanded !== undefined && !isDemanded) {
    return `the policy requires ${JSON.stringify(demanded)}`
  }
  if (typeof value !== 'number') return ''
  const seconds = nowMs / 1000 - value
  const apart = formatDuration(Math.abs(seconds))
  return `${formatTime(value)}, ${seconds < 0 ? `in ${apart}` : `${apart} ago`}`
}
