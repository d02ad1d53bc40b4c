import type { DeniedEntry } from '../../stores/redis/denylist/operations.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import type { Report } from '../frame/command-failure.js'
import { readIssuer } from '../input/policy-file.js'
import { columns } from '../output/columns.js'
import { formatUntil, formatValue } from '../output/format-time.js'
import { awaitReceivers } from './await-receivers.js'
import { CHANGE_OPTIONS, readAuthor, readEnd, readWaitMs, shortText } from './change-options.js'
import { denyFile } from './deny-file.js'
import {
  type DenyTarget,
  issuedBeforeAt,
  readKind,
  readTarget,
  valueMissing,
} from './deny-target.js'
import { withDenylist } from './denylist-access.js'

const NEEDED = '--policy FILE --for TIME --reason TEXT'

export const deny: Command = {
  name: 'deny',
  summary: 'Denies a caller, a key, a token or all older tokens in every receiver',
  usage: [
    `caller|key VALUE ${NEEDED} [--unlisted]`,
    `token VALUE|--token-stdin ${NEEDED}`,
    `issued-before now|SECONDS|ISO-TIME ${NEEDED}`,
    '--file FILE [OPTIONS]  (for lines that lack issuer, until, reason or by)',
  ],
  maxValues: 2,
  options: {
    for: { kind: 'text', value: 'TIME', help: 'the duration: 15m, 2h, 7d or forever' },
    'token-stdin': {
      kind: 'flag',
      help: 'deny the jti of the token on standard input; its signature must be valid',
    },
    tolerance: {
      kind: 'text',
      value: 'TIME',
      help: 'for issued-before now: the clock difference to allow, up to 59s (default: 5s)',
    },
    file: {
      kind: 'text',
      value: 'FILE',
      help: 'deny all entries of a file or none: 1 to 1000 lines, each a JSON object',
    },
    unlisted: {
      kind: 'flag',
      help: 'deny a caller or key not in the policy or key set (--issuer checks no callers)',
    },
    ...CHANGE_OPTIONS,
  },
  exit1Help:
    'the change is written, but a receiver has not applied it yet, or there is no receiver',
  examples: [
    'service-auth deny key d-1790000000000 --policy policy.json --for 7d --reason "leaked"',
    'service-auth deny token --token-stdin --policy policy.json --for 2h --reason "seen" < token.txt',
    'service-auth deny --file stolen.ndjson --issuer https://core.example --for 2h --reason "seen"',
    'service-auth deny issued-before now --policy policy.json --for 2h --reason "core was open"',
  ],
  run,
}

async function run(context: CommandContext): Promise<CommandResult> {
  const args = context.arguments
  const file = args.text('file')
  if (file !== undefined) return await denyFile(context, file)
  // Checked first: if kind or value is missing, an error about an option would mislead.
  const kind = readKind(args.values[0])
  if (args.values[1] === undefined && !args.flag('token-stdin')) throw valueMissing(kind)
  const named = await readIssuer(context)
  const issuer = shortText('the issuer', named.issuer)
  const author = readAuthor(context)
  const endAt = readEnd(args.required('for'))
  const waitMs = readWaitMs(context)
  return await withDenylist(context, async (access) => {
    const target = await readTarget(context, named)
    const { denylist, callOptions } = access
    const { serverSeconds } = await denylist.version(callOptions)
    const value = deniedValue(target, serverSeconds)
    const at = Math.floor(serverSeconds)
    const entry = { issuer, kind, value, ...author, at, until: endAt(serverSeconds) }
    const { version, ...denied } = await denylist.deny(entry, callOptions)
    const written = reportDenied(denied, version)
    return awaitReceivers(access, { version, waitMs, written })
  })
}

const deniedValue = (target: DenyTarget, serverSeconds: number): string | number =>
  target.kind === 'issued-before' ? issuedBeforeAt(target.cutOff, serverSeconds) : target.value

function reportDenied({ entry, isEarlier }: DeniedEntry, version: number): Report {
  const { issuer, kind, value, reason, by, until } = entry
  const rows = [
    [kind, formatValue(value)],
    ['issuer', issuer],
    ['until', formatUntil(until)],
    ['reason', reason],
    ['by', by],
  ]
  const title = isEarlier ? EARLIER : 'Denied'
  return { lines: [title, ...columns(rows, '  ')], json: { entry, isEarlier, version } }
}

const EARLIER = 'Already denied: the earlier entry ends later and stays in force'
