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
import { readTextFile } from '../input/private-file.js'
import { columns } from '../output/columns.js'
import { formatUntil, formatValue } from '../output/format-time.js'
import { CHANGE_OPTIONS, changeList, readAuthor, readListIssuer, shortText } from './change.js'
import { checkCutOff, readKind, readValue, valueMissing } from './deny-target.js'

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

/** Returns entries that depend on the time of Redis's clock, in seconds since the epoch. */
type EntriesAt<Entry = DenylistEntry> = (serverSeconds: number) => Entry[]

async function run(context: CommandContext): Promise<CommandResult> {
  const file = context.arguments.text('file')
  const entriesAt = file === undefined ? await readOne(context) : await readEntryFile(context, file)
  const report = file === undefined ? reportOne : reportFile
  return await changeList(context, async ({ denylist, callOptions }) => {
    const { serverSeconds } = await denylist.version(callOptions)
    const { version, entries } = await denylist.deny(entriesAt(serverSeconds), callOptions)
    return { ...report(entries), version }
  })
}

/** Reads the entry that the arguments describe. @throws CommandFailure */
async function readOne(context: CommandContext): Promise<EntriesAt> {
  const args = context.arguments
  // Checked first: if kind or value is missing, an error about an option would mislead.
  const kind = readKind(args.values[0])
  if (args.values[1] === undefined && !args.has('token-stdin')) throw valueMissing(kind)
  const named = await readListIssuer(context)
  const { issuer } = named
  const reason = shortText('--reason', args.required('reason'))
  const by = readAuthor(context)
  const endAt = readEnd(args.required('for'))
  const valueAt = await readValue(context, kind, named)
  return (serverSeconds) => {
    const [value, until] = [valueAt(serverSeconds), endAt(serverSeconds)]
    return [{ issuer, kind, value, reason, by, at: Math.floor(serverSeconds), until }]
  }
}

/** Up to ten years. */
const FOR_RANGE = { minMs: 1000, maxMs: 3650 * 86_400_000 }

/** Reads `--for`. Returns the end of the entry; `null` means no end. @throws CommandFailure (2) */
function readEnd(duration: string): (serverSeconds: number) => number | null {
  if (duration === 'forever') return () => null
  const forMs = parseDuration('--for', duration, FOR_RANGE)
  return (serverSeconds) => Math.ceil(serverSeconds + forMs / 1000)
}

interface Line {
  /** Starts at 1. */
  readonly number: number
  readonly json: Readonly<Record<string, unknown>>
}

/**
 * Reads a file of entries. Members that a line lacks come from the options.
 *
 * @throws CommandFailure (2) with the number of a wrong line, without its text.
 */
async function readEntryFile(context: CommandContext, file: string): Promise<EntriesAt> {
  const { arguments: args } = context
  const hasConflict = ['token-stdin', 'tolerance', 'unlisted'].some((name) => args.has(name))
  if (args.values.length > 0 || hasConflict) {
    throw usageError(
      '--file cannot be combined with a kind, a value, --token-stdin, --tolerance or --unlisted',
    )
  }
  const lines = splitLines(await readTextFile('--file', file, 'public'))
  const isIssuerNamed = ['issuer', 'policy'].some((name) => args.text(name) !== undefined)
  const issuer = isIssuerNamed ? (await readListIssuer(context)).issuer : undefined
  const reason = args.text('reason')
  const duration = args.text('for')
  const endAt = duration === undefined ? undefined : readEnd(duration)
  const by = readAuthor(context)
  return (serverSeconds) => {
    const defaults = {
      by,
      at: Math.floor(serverSeconds),
      ...(issuer !== undefined && { issuer }),
      ...(reason !== undefined && { reason }),
      ...(endAt !== undefined && { until: endAt(serverSeconds) }),
    }
    return lines.map((line) => entryOf(line, { ...defaults, ...line.json }, serverSeconds))
  }
}

/** Skips empty lines. @throws CommandFailure (2) */
function splitLines(text: string): Line[] {
  const texts = text.split(/\r?\n/).map((line, index) => ({ line, number: index + 1 }))
  const filled = texts.filter(({ line }) => line.trim() !== '')
  if (filled.length < 1 || filled.length > MAX_LIST_LENGTH) {
    throw usageError(`--file must name a file of 1 to ${MAX_LIST_LENGTH} lines`, 'file')
  }
  return filled.map(({ line, number }) => {
    const json = parseJson(line)
    if (isObject(json)) return { number, json: json as Line['json'] }
    throw usageError(`line ${number} of --file is not a JSON object`, 'file')
  })
}

function entryOf({ number }: Line, input: unknown, serverSeconds: number): DenylistEntry {
  const fault = (text: string): Error => usageError(`line ${number} of --file: ${text}`, 'file')
  let entry: DenylistEntry
  try {
    entry = checkEntry(input)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw fault(error.message.replace(/^denylist entry: /, ''))
  }
  if (entry.until !== null && entry.until <= serverSeconds) {
    throw fault('until must be later than now')
  }
  if (typeof entry.value === 'number') checkCutOff(entry.value, serverSeconds)
  return entry
}

function reportOne([denied]: readonly DeniedEntry[]): Report {
  const { entry, isEarlier } = denied as DeniedEntry
  const { issuer, kind, value, reason, by, until } = entry
  const rows = [
    [kind, formatValue(value)],
    ['issuer', issuer],
    ['until', formatUntil(until)],
    ['reason', reason],
    ['by', by],
  ]
  const title = isEarlier ? EARLIER : 'Denied'
  return { lines: [title, ...columns(rows, '  ')], json: { entry, isEarlier } }
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
  return { lines: [...lines, ...columns(rows, '  ')], json: { entries } }
}
