import { withoutQuery } from '../../base/decision/key-set-event.js'
import { pathOfTarget } from '../../verification/confirmation/http-uri.js'
import { formatFailure } from '../../verification/key-set/fetch-key-set.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { type Report, unreachableError, usageError } from '../frame/command-failure.js'
import { POLICY_OPTION, readPolicies } from '../input/policy-file.js'
import { readStandardInput } from '../input/standard-input.js'
import { columns, INDENT } from '../output/columns.js'
import { findingLines, findingsOf, hasFault } from '../output/findings.js'
import { daysUntil, formatDuration, formatTime } from '../output/format-time.js'
import { type Examination, examine } from './examine.js'
import type { KeySetReply, PublishedKey } from './published-key-set.js'
import { type CheckedToken, checkToken, type GivenProof, verdictLines } from './token-verdict.js'

export const doctor: Command = {
  name: 'doctor',
  summary: 'Checks the key set as a receiver sees it, and optionally a token',
  usage: [
    '--policy FILE [--token-stdin] [--strict]',
    '--policy FILE --token-stdin --proof-stdin --method M --url U [--strict]',
  ],
  options: {
    Options: {
      ...POLICY_OPTION,
      '--token-stdin': 'check the token on standard input, step by step',
      '--proof-stdin': 'check the DPoP proof on its second line, too',
      '--method M': 'the method of the request with the proof',
      '--url U': 'its path with query, or its URL',
      '--strict': 'exit with 1 for warnings, too',
    },
  },
  exitCodes: { 1: 'a fault (with --strict, also a warning) was found, or the token is refused' },
  run,
}

async function run(context: CommandContext): Promise<CommandResult> {
  const policies = await readPolicies(context)
  // Reads the token before the key set: the key of a token that is issued later could be missing there.
  const { token, proof } = await readCredential(context)
  const examinations = await Promise.all(policies.map(examine))
  const decided = token === undefined ? undefined : await checkToken(token, examinations, proof)
  const report = reportOn(examinations, decided)
  const unreachable = examinations.find(
    ({ answer, findings }) => !answer.outcome.ok && !hasFault(findings),
  )
  if (unreachable !== undefined) {
    throw unreachableError('key_set_unavailable', unreachableMessage(unreachable.answer), report)
  }
  const isStrict = context.arguments.has('strict')
  const isFaulty = examinations.some(({ findings }) =>
    isStrict ? findings.length > 0 : hasFault(findings),
  )
  const isAccepted = decided === undefined || decided.verdict.outcome === 'accepted'
  return { ...report, exitCode: isAccepted && !isFaulty ? 0 : 1 }
}

/** Names the policies if there are several. */
function reportOn(examinations: readonly Examination[], decided: CheckedToken | undefined): Report {
  const isOnly = examinations.length === 1
  const reports = examinations.map((examination): Report => {
    const { issuer, tokens } = examination.policy
    const names = columns([
      ['Issuer', issuer],
      ['Tokens', tokens.kind],
    ])
    return {
      lines: [...(isOnly ? [] : names), ...doctorLines(examination)],
      json: {
        ...(!isOnly && { issuer, tokens: tokens.kind }),
        ...examinationJson(examination),
      },
    }
  })
  const lines = reports.flatMap((each, index) => [...(index === 0 ? [] : ['']), ...each.lines])
  const policies = reports.map(({ json }) => json)
  return {
    lines: [...lines, ...verdictLines(decided, Date.now())],
    json: {
      ...(isOnly ? policies[0] : { policies }),
      ...(decided && { verdict: decided.verdict }),
    },
  }
}

function unreachableMessage({ jwksUri, outcome }: KeySetReply): string {
  const reason = outcome.ok ? '' : formatFailure(outcome.failure)
  return `the key set at ${withoutQuery(jwksUri)} is unreachable (${reason})`
}

function examinationJson({ answer, tls, keys, clockOffsetSeconds, findings }: Examination) {
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
    warnings: findingsOf(findings, 'warnings'),
    faults: findingsOf(findings, 'faults'),
  }
}

function doctorLines(examination: Examination): string[] {
  const { keys, findings } = examination
  const findingsShown = findingLines(findings)
  return [
    ...columns(summaryRows(examination)),
    ...(keys.length === 0 ? [] : ['', 'Keys', ...columns(keys.map(keyRow), INDENT)]),
    ...(findingsShown.length === 0 ? [] : ['', ...findingsShown]),
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

function formatCache({ outcome }: KeySetReply): string {
  const left = outcome.ok ? outcome.freshness.leftSeconds : undefined
  return left === undefined ? 'no freshness lifetime' : `fresh for ${formatDuration(left)}`
}

function formatClock(offsetSeconds: number | undefined): string {
  if (offsetSeconds === undefined) return 'no Date header to compare with'
  if (offsetSeconds === 0) return 'agrees with this machine'
  const apart = formatDuration(Math.abs(offsetSeconds))
  return `${apart} ${offsetSeconds > 0 ? 'ahead of' : 'behind'} this machine's`
}

function keyRow({ kid, kind, bits, usable, reason }: PublishedKey): string[] {
  return [
    kid ?? '(no key id)',
    ...(kind === undefined ? [] : [kind]),
    bits === undefined ? '-' : `${bits} bits`,
    usable ? 'usable' : `not usable: ${reason}`,
  ]
}

/** The token to check and its DPoP proof, if given. */
interface Credential {
  readonly token?: string
  readonly proof?: GivenProof
}

/**
 * Reads the token and its proof from standard input, if the options say that they are there.
 *
 * @throws CommandFailure (2) if one of them is missing, or an option is given without the one it requires.
 */
async function readCredential(context: CommandContext): Promise<Credential> {
  const args = context.arguments
  if (!args.has('token-stdin')) {
    args.refuse(['proof-stdin', 'method', 'url'], 'requires --token-stdin')
    return {}
  }
  if (!args.has('proof-stdin')) {
    args.refuse(['method', 'url'], 'requires --proof-stdin')
    return { token: await readStandardInput(context, 'the token') }
  }
  const [method, url] = [args.required('method'), args.required('url')]
  if (pathOfTarget(method, url) === undefined) {
    throw usageError('--url must be a path with query, or an absolute URL')
  }
  const lines = (await readStandardInput(context, 'the token and the proof')).split(/\r?\n/)
  const [token = '', proof, ...more] = lines
  if (proof === undefined || more.length > 0) {
    throw usageError('standard input must be two lines: the token and the proof', 'input')
  }
  return { token, proof: { proof, method, url } }
}
