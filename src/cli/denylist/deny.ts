import { parseJson } from '../../base/json.js'
import { isObject } from '../../base/options.js'
import type { DeniedEntry } from '../../stores/redis/denylist/operations.js'
import {
  checkEntry,
  type DenylistEntry,
  MAX_LIST_LENGTH,
} from '../../verification/denylist/denylist-entry.js'
import { parseDuration } from '../frame/arguments.js'
import type { Command, CommandContext, CommandResult } from '../frame/command.js'
import { type Report, usageError } from '../frame/command-failure.js'
import { readIssuer } from '../input/policy-file.js'
import { readTextFile } from '../input/private-file.js'
import { columns, INDENT } from '../output/columns.js'
import { formatUntil, formatValue } from '../output/format-time.js'
import { CHANGE_OPTIONS, changeList, readAuthor } from './change.js'
import { MAX_AHEAD_SECONDS, readKind, readValue, valueMissing } from './deny-target.js'

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
    Options: {
      '--for TIME': 'the duration: 15m, 2h, 7d or forever',
      '--token-stdin': 'deny the jti of the token on standard input; its signature must be valid',
      '--tolerance TIME':
        'for issued-before now: the clock difference to allow, up to 59s (default: 5s)',
      '--file FILE': 'deny all entries of a file or none: 1 to 1000 lines, each a JSON object',
      '--unlisted':
        'deny a caller or key not in the policy or key set (--issuer checks no callers)',
      ...CHANGE_OPTIONS,
    },
  },
  exitCodes: {
    1: 'the change is written, but a receiver has not applied it yet, or there is no receiver',
  },
  run,
}

type MembersAt = (serverSeconds: number) => Readonly<Record<string, unknown>>

/** An entry to deny. */
interface Wanted {
  /** Begins a message about it. */
  readonly place: string
  /** Its members at a time of Redis's clock, in seconds since the epoch. */
  readonly membersAt: MembersAt
}

async function run(context: CommandContext): Promise<CommandResult> {
  const { arguments: args } = context
  const file = args.text('file')
  const wanted = file === undefined ? [await readOne(context)] : await readFile(context, file)
  // A wrong text is told before Redis is asked for its time, which the ends depend on.
  for (const one of wanted) entryOf(one, Date.now() / 1000)
  return await changeList(context, async ({ denylist, callOptions }) => {
    const { serverSeconds } = await denylist.version(callOptions)
    const checked = wanted.map((one) => atTime(one, serverSeconds))
    const { version, entries } = await denylist.deny(checked, callOptions)
    return { ...(file === undefined ? reportOne(entries) : reportFile(entries)), version }
  })
}

/** Reads the entry that the arguments describe. @throws CommandFailure */
async function readOne(context: CommandContext): Promise<Wanted> {
  const args = context.arguments
  // Checked first: if kind or value is missing, an error about an option would mislead.
  const kind = readKind(args)
  if (args.values[1] === undefined && !args.has('token-stdin')) throw valueMissing(kind)
  const named = await readIssuer(context)
  for (const name of ['reason', 'for']) args.required(name)
  const optionsAt = readOptions(context)
  const valueAt = await readValue(context, kind, named)
  const { issuer } = named
  return {
    place: '',
    membersAt: (seconds) => ({ ...optionsAt(seconds), issuer, kind, value: valueAt(seconds) }),
  }
}

/** Returns what the options say of each entry. @throws CommandFailure (2) */
function readOptions(context: CommandContext): MembersAt {
  const { arguments: args } = context
  const [by, reason, duration] = [readAuthor(context), args.shortText('reason'), args.text('for')]
  const endAt = duration === undefined ? undefined : readEnd(duration)
  return (seconds) => ({
    by,
    at: Math.floor(seconds),
    ...(reason !== undefined && { reason }),
    ...(endAt !== undefined && { until: endAt(seconds) }),
  })
}

/** Up to ten years. */
const FOR_RANGE = { minMs: 1000, maxMs: 3650 * 86_400_000 }

/** Reads `--for`. Returns the end of the entry; `null` means no end. @throws CommandFailure (2) */
function readEnd(duration: string): (serverSeconds: number) => number | null {
  if (duration === 'forever') return () => null
  const forMs = parseDuration('--for', duration, FOR_RANGE)
  return (serverSeconds) => Math.ceil(serverSeconds + forMs / 1000)
}

/**
 * Reads a file of entries. Members that a line lacks come from the options.
 *
 * @throws CommandFailure (2) with the number of a wrong line, without its text.
 */
async function readFile(context: CommandContext, file: string): Promise<Wanted[]> {
  const { arguments: args } = context
  args.refuse(['token-stdin', 'tolerance', 'unlisted'], 'cannot be combined with --file')
  if (args.values.length > 0) throw usageError('--file takes the place of the kind and its value')
  const isIssuerNamed = args.has('issuer') || args.has('policy')
  const named = isIssuerNamed && { issuer: (await readIssuer(context)).issuer }
  const optionsAt = readOptions(context)
  const texts = (await readTextFile('--file', file, 'public')).split(/\r?\n/)
  const lines = texts.flatMap((line, index): Wanted[] => {
    if (line.trim() === '') return []
    const place = `line ${index + 1} of --file`
    const json = parseJson(line)
    if (!isObject(json)) throw usageError(`${place} is not a JSON object`, 'file')
    const membersAt: MembersAt = (seconds) => ({ ...optionsAt(seconds), ...named, ...json })
    return [{ place: `${place}: `, membersAt }]
  })
  if (lines.length > 0 && lines.length <= MAX_LIST_LENGTH) return lines
  throw usageError(`--file must name a file of 1 to ${MAX_LIST_LENGTH} lines`, 'file')
}

/** @throws CommandFailure (2) */
const entryOf = ({ place, membersAt }: Wanted, seconds: number): DenylistEntry =>
  toldAt(place, () => checkEntry(membersAt(seconds)))

/** @throws CommandFailure (2) if the entry has ended, or cuts off tokens of the future. */
const atTime = (wanted: Wanted, serverSeconds: number): DenylistEntry =>
  toldAt(wanted.place, () => {
    const entry = entryOf(wanted, serverSeconds)
    if (entry.until !== null && entry.until <= serverSeconds) {
      throw new TypeError('until must be later than now')
    }
    if (Number(entry.value) > serverSeconds + MAX_AHEAD_SECONDS && entry.kind === 'issued-before') {
      throw new TypeError(`the cut-off is more than ${MAX_AHEAD_SECONDS} s ahead of Redis's time`)
    }
    return entry
  })

function toldAt<T>(place: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    const fault = error.message.replace(/^denylist entry: /, '')
    throw usageError(place + fault, place ? 'file' : 'usage')
  }
}

function reportOne([denied]: readonly DeniedEntry[]): Report {
  const { entry, isEarlier } = denied as DeniedEntry
  const { issuer, kind, value, reason, by, until } = entry
  const shown = { [kind]: formatValue(value), issuer, until: formatUntil(until), reason, by }
  const title = isEarlier ? EARLIER : 'Denied'
  return { lines: [title, ...columns(Object.entries(shown), INDENT)], json: { entry, isEarlier } }
}

const EARLIER = 'Already denied: the earlier entry ends later and stays in force'

function reportFile(entries: readonly DeniedEntry[]): Report {
  const earlier = entries.filter(({ isEarlier }) => isEarlier)
  const rows = earlier.map(({ entry: { kind, value, issuer, until, by, reason } }) => [
    kind,
    formatValue(value),
    issuer,
    formatUntil(until),
    by,
    reason,
  ])
  const lines = [`Denied ${entries.length === 1 ? '1 entry' : `${entries.length} entries`}`]
  if (rows.length > 0) lines.push(`An earlier entry stays in force for ${rows.length} of them:`)
  return { lines: [...lines, ...columns(rows, INDENT)], json: { entries } }
}
