import type { Policy } from '../../verification/policy/policy.js'
import { columns } from '../output/columns.js'
import { durationInWords, momentInWords } from '../output/format-time.js'
import { JUDGED_CLAIMS, type TokenVerdict } from './token-verdict.js'
import { QUESTIONS } from './verdict-step.js'

const INDENT = '  '
const MAX_SHOWN_LENGTH = 200
/** A receiver may refuse it all the same. */
const NOT_ASKED = `${INDENT}not asked: a live denylist (see service-auth denylist), and whether it was used before`

/** A verdict for people. */
export function verdictLines(verdict: TokenVerdict, policy: Policy, nowMs: number): string[] {
  const { outcome, reason, status, steps, claims, missingPermission } = verdict
  const missing = missingPermission === undefined ? '' : ` (${missingPermission})`
  const why = reason === undefined ? '' : `: ${reason}${missing}, the caller gets ${status}`
  const results = { passed: 'passed', failed: 'FAILED', not_reached: '-' }
  return [
    `Token ${outcome}${why}`,
    ...(outcome === 'accepted' ? [NOT_ASKED] : []),
    ...columns(
      steps.map(({ step, result }) => [step, results[result], QUESTIONS[step]]),
      INDENT,
    ),
    ...(claims === undefined ? [] : ['', 'Claims, verified', ...claimLines(claims, policy, nowMs)]),
  ]
}

function claimLines(
  claims: Readonly<Record<string, unknown>>,
  policy: Policy,
  nowMs: number,
): string[] {
  const demanded: Readonly<Record<string, string>> = {
    iss: policy.issuer,
    aud: policy.audience,
    source: policy.source,
    token_type: policy.tokenType,
  }
  const rows = JUDGED_CLAIMS.map((claim) => {
    const value = claims[claim]
    const shown = value === undefined ? 'missing' : JSON.stringify(value).slice(0, MAX_SHOWN_LENGTH)
    return [claim, shown, noteOn(value, demanded[claim], nowMs)]
  })
  return columns(rows, INDENT)
}

function noteOn(value: unknown, demanded: string | undefined, nowMs: number): string {
  if (demanded !== undefined && value !== demanded) {
    return `the policy demands ${JSON.stringify(demanded)}`
  }
  if (typeof value !== 'number') return ''
  const seconds = nowMs / 1000 - value
  const apart = durationInWords(Math.abs(seconds))
  return `${momentInWords(value)}, ${seconds < 0 ? `in ${apart}` : `${apart} ago`}`
}
