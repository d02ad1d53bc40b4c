import type { DenylistEntry } from '../denylist/entry.js'
import { awaitReceivers, resultOf } from './await-receivers.js'
import { columns } from './columns.js'
import type { Command, CommandContext, CommandResult } from './command.js'
import { cutOffAt } from './cut-off.js'
import { type DeniedThing, readKind, readThing } from './denied-thing.js'
import { answered, withDenylist } from './denylist-client.js'
import { CHANGE_OPTIONS, readAuthor, readWaitMs, textOf } from './denylist-options.js'
import { parseDuration } from './duration.js'
import type { Report } from './failure.js'
import { readIssuer } from './policy-file.js'
import { momentInWords } from './time-in-words.js'

const NEEDED = '--policy FILE --for TIME --reason TEXT'

export const deny: Command = {
  name: 'deny',
  summary: 'Shuts a caller, a key, a token or all older tokens out of every receiver',
  usage: [
    `caller|key VALUE ${NEEDED} [--unlisted]`,
    `token VALUE|--token-stdin ${NEEDED}`,
    `issued-before now|SECONDS|ISO-TIME ${NEEDED}`,
  ],
  maxValues: 2,
  options: {
    for: { kind: 'text', value: 'TIME', help: 'for how long: 15m, 2h, 7d or forever; required' },
    'token-stdin': {
      kind: 'flag',
      help: 'take the jti of the token on standard input, if its signature holds',
    },
    tolerance: {
      kind: 'text',
      value: 'TIME',
      help: 'with issued-before now: how far clocks may differ, up to 59s (default: 5s)',
    },
    unlisted: {
      kind: 'flag',
      help: 'deny what policy or key set lack (with --issuer callers are not checked)',
    },
    ...CHANGE_OPTIONS,
  },
  oneMeans: 'it is written, but a receiver does not apply it yet, or there is none',
  examples: [
    'service-auth deny key d-1790000000000 --policy policy.json --for 7d --reason "leaked"',
    'service-auth deny token --token-stdin --policy policy.json --for 2h --reason "seen" < token.txt',
    'service-auth deny issued-before now --policy policy.json --for 2h --reason "core was open"',
  ],
  run,
}

/** Ten years. */
const FOR_RANGE = { leastMs: 1000, mostMs: 3650 * 86_400_000 }

async function run(context: CommandContext): Promise<CommandResult> {
  const given = context.arguments
  // Without a kind the rest of the line may be meant otherwise.
  readKind(given.values[0])
  const named = await readIssuer(context)
  const issuer = textOf('the issuer', named.issuer)
  const author = readAuthor(context)
  const lasts = given.required('for')
  const forMs = lasts === 'forever' ? undefined : parseDuration('--for', lasts, FOR_RANGE)
  const waitMs = readWaitMs(context)
  return await withDenylist(context, async (access) => {
    const thing = await readThing(context, named)
    const { denylist, asking } = access
    const { serverSeconds } = await answered(denylist.version(asking))
    const { kind } = thing
    const value = deniedValue(thing, serverSeconds)
    const until = forMs === undefined ? null : Math.ceil(serverSeconds + forMs / 1000)
    const at = Math.floor(serverSeconds)
    const wanted = { issuer, kind, value, ...author, at, until }
    const { version, entry } = await answered(denylist.deny(wanted, asking))
    const written = reportOf(entry, version)
    return resultOf(written, await awaitReceivers(access, { version, waitMs, written }))
  })
}

const deniedValue = (thing: DeniedThing, serverSeconds: number): string | number =>
  thing.kind === 'issued-before' ? cutOffAt(thing.cutOff, serverSeconds) : thing.value

function reportOf(entry: DenylistEntry, version: number): Report {
  const { issuer, kind, value, reason, by, until } = entry
  const rows = [
    [kind, typeof value === 'number' ? momentInWords(value) : value],
    ['issuer', issuer],
    ['until', until === null ? 'for ever' : momentInWords(until)],
    ['reason', reason],
    ['by', by],
  ]
  return { lines: ['Denied', ...columns(rows, '  ')], json: { entry, version } }
}
