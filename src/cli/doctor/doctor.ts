import { withoutQuery } from '../../base/decision/key-set-event.js'
import { formatFailure } from '../../verification/key-set/fetch-key-set.js'
import type { Policy } from '../../verification/policy/policy.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { type Report, unreachableError } from '../frame/command-failure.js'
import { POLICY_OPTION, readPolicy } from '../input/policy-file.js'
import { readStandardInput } from '../input/standard-input.js'
import { columns, findingLines } from '../output/columns.js'
import { daysUntil, formatDuration, formatTime } from '../output/format-time.js'
import { type Examination, examine } from './examine.js'
import { type PublishedKey, UNUSABLE } from './published-key.js'
import type { KeySetReply } from './request-key-set.js'
import { checkedClaims, type TokenVerdict } from './token-verdict.js'
import { conditionOf } from './verdict-step.js'

export const doctor: Command = {
  name: 'doctor',
  summary: 'Checks the key set as a receiver sees it, and optionally a token',
  usage: ['--policy FILE [--token-stdin] [--strict]'],
  options: {
    ...POLICY_OPTION,
    'token-stdin': { kind: 'flag', help: 'check the token on standard input, step by step' },
    strict: { kind: 'flag', help: 'exit with 1 for warnings, too' },
  },
  exit1Help: 'a fault (with --strict, also a warning) was found, or the token is refused',
  examples: [
    'service-auth doctor --policy policy.json',
    'service-auth doctor --policy policy.json --token-stdin < token.txt',
    'service-auth doctor --policy policy.json --strict --json',
  ],
  run,
}

async function run(context: CommandContext): Promise<CommandResult> {
  const policy = await readPolicy(context)
  const isTokenGiven = context.arguments.flag('token-stdin')
  // Read before the key set is fetched: a key that is created in between would be unknown.
  const token = isTokenGiven ? await readStandardInput(context, 'the token') : undefined
  const examination = await examine(policy, token)
  const report: Report = { lines: doctorLines(examination), json: jsonOf(examination) }
  const { answer, findings, verdict } = examination
  const { outcome } = answer
  if (!outcome.ok && findings.faults.length === 0) {
    throw unreachableError('key_set_unavailable', messageOf(answer), report)
  }
  const isStrict = context.arguments.flag('strict')
  const isWell =
    findings.faults.length === 0 &&
    (findings.warnings.length === 0 || !isStrict) &&
    (verdict === undefined || verdict.outcome === 'accepted')
  return { ...report, exitCode: isWell ? 0 : 1 }
}

function messageOf({ jwksUri, outcome }: KeySetReply): string {
  const reason = outcome.ok ? '' : formatFailure(outcome.failure)
  return `the key set at ${withoutQuery(jwksUri)} is unreachable (${reason})`
}

function jsonOf({ answer, tls, keys, clockOffsetSeconds, findings, verdict }: Examination) {
  const { outcome, response } = answer
  const maxAgeSeconds = outcome.ok ? outcome.freshness.maxAgeSeconds : undefined
  return {
    keySet: {
      jwksUri: withoutQuery(answer.jwksUri),
      status: response?.status ?? null,
      ...(maxAgeSeconds !== undefined && { maxAgeSeconds }),
      ...(clockOffsetSeconds !== undefined && { clockOffsetSeconds }),
      ...(tls !== undefined && { tls }),
      keys,
    },
    warnings: findings.warnings,
    faults: findings.faults,
    ...(verdict !== undefined && { verdict }),
  }
}

const INDENT = '  '

function doctorLines(examination: Examination): string[] {
  const { keys, findings, verdict, policy } = examination
  const findingsShown = findingLines(findings)
  return [
    ...columns(summaryRows(examination)),
    ...(keys.length === 0 ? [] : ['', 'Keys', ...columns(keys.map(keyRow), INDENT)]),
    ...(findingsShown.length === 0 ? [] : ['', ...findingsShown]),
    ...(verdict === undefined ? [] : ['', ...verdictLines(verdict, policy, examination.nowMs)]),
  ]
}

function summaryRows({ answer, clockOffsetSeconds, tls, nowMs }: Examination): string[][] {
  const { response } = answer
  const rows = [['Key set', withoutQuery(answer.jwksUri)]]
  if (response === undefined) return rows
  rows.push(['Status', String(response.status)])
  if (answer.outcome.ok) rows.push(['Cache', formatCache(answer)])
  rows.push(['Clock', formatClock(clockOffsetSeconds)])
  if (tls === undefined) return rows
  const left = `${daysUntil(tls.validUntil, nowMs)} days`
  const until = `certificate until ${formatTime(tls.validUntil)} (${left}), issued by ${tls.issuer}`
  return [...rows, ['TLS', `${tls.protocol}, ${until}`]]
}

const MAX_HEADER_LENGTH = 120

function formatCache({ outcome, response }: KeySetReply): string {
  const said = response?.headers.get('cache-control')?.slice(0, MAX_HEADER_LENGTH)
  const { leftSeconds } = outcome.ok ? outcome.freshness : { leftSeconds: undefined }
  if (said === undefined) return 'no Cache-Control'
  if (leftSeconds === undefined) return `${said}: no freshness lifetime`
  const age = response?.headers.get('age')?.slice(0, MAX_HEADER_LENGTH)
  const aged = age === undefined ? '' : `, ${age} s old (from a cache)`
  return `${said}${aged}: fresh for ${formatDuration(leftSeconds)}`
}

function formatClock(offsetSeconds: number | undefined): string {
  if (offsetSeconds === undefined) return 'no Date header to compare with'
  if (offsetSeconds === 0) return 'agrees with ours'
  const apart = formatDuration(Math.abs(offsetSeconds))
  return `${apart} ${offsetSeconds > 0 ? 'ahead of' : 'behind'} ours`
}

function keyRow({ kid, kind, bits, ageSeconds, usable, reason }: PublishedKey): string[] {
  return [
    kid ?? '(no key id)',
    kind,
    bits === undefined ? '-' : `${bits} bits`,
    ageSeconds === undefined ? '-' : `${formatDuration(ageSeconds)} old`,
    usable || reason === undefined ? 'usable' : `not usable: ${UNUSABLE[reason]}`,
  ]
}

const MAX_CLAIM_LENGTH = 200
/** A receiver may still refuse an accepted token for one of these reasons. */
const NOT_CHECKED = `${INDENT}not checked: a live denylist (see service-auth denylist) and earlier use of the token`

function verdictLines(verdict: TokenVerdict, policy: Policy, nowMs: number): string[] {
  const { outcome, reason, status, steps, claims, missingPermission } = verdict
  const missing = missingPermission === undefined ? '' : ` (${missingPermission})`
  const why = reason === undefined ? '' : `: ${reason}${missing}, the caller gets ${status}`
  const results = { passed: 'passed', failed: 'FAILED', not_reached: '-' }
  return [
    `Token ${outcome}${why}`,
    ...(outcome === 'accepted' ? [NOT_CHECKED] : []),
    ...columns(
      steps.map(({ step, result }) => [step, results[result], conditionOf(step, policy)]),
      INDENT,
    ),
    ...(claims === undefined ? [] : ['', 'Verified claims', ...claimLines(claims, policy, nowMs)]),
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
