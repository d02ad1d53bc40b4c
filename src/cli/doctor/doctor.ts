import { withoutQuery } from '../../base/decision/key-set-event.js'
import { formatFailure } from '../../verification/key-set/fetch-key-set.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { type Report, unreachableError } from '../frame/command-failure.js'
import { POLICY_OPTION, readPolicy } from '../input/policy-file.js'
import { readStandardInput } from '../input/standard-input.js'
import { doctorLines } from './doctor-lines.js'
import { type Examination, examine } from './examine.js'
import type { KeySetReply } from './request-key-set.js'

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
