import { parseJson } from '../../base/json.js'
import { isObject } from '../../base/options.js'
import type { DeniedEntry } from '../../stores/redis/denylist/operations.js'
import { checkEntry, MAX_LIST_LENGTH } from '../../verification/denylist/check-entry.js'
import type { DenylistEntry } from '../../verification/denylist/denylist-entry.js'
import type { CommandContext, CommandResult } from '../frame/command.js'
import { type Report, usageError } from '../frame/command-failure.js'
import { readIssuer } from '../input/policy-file.js'
import { readTextFile } from '../input/private-file.js'
import { columns } from '../output/columns.js'
import { formatUntil, formatValue } from '../output/format-time.js'
import { awaitReceivers } from './await-receivers.js'
import { readEnd, readWaitMs, shortText, userName } from './change-options.js'
import { issuedBeforeAt } from './deny-target.js'
import { withDenylist } from './denylist-access.js'

/**
 * Denies the entries of a file, all or none. Members that a line lacks come from the options.
 *
 * @throws CommandFailure (2) with the number of a wrong line, (3) if the denylist cannot be
 * reached.
 */
export async function denyFile(context: CommandContext, file: string): Promise<CommandResult> {
  const { arguments: args } = context
  const hasConflict = ['token-stdin', 'tolerance', 'unlisted'].some((name) => args.flag(name))
  if (args.values.length > 0 || hasConflict) {
    throw usageError(
      'usage',
      '--file cannot be combined with a kind, a value, --token-stdin, --tolerance or --unlisted',
    )
  }
  const lines = splitLines(await readTextFile('--file', file, 'public'))
  const defaultsAt = await readDefaults(context)
  const waitMs = readWaitMs(context)
  return await withDenylist(context, async (access) => {
    const { denylist, callOptions } = access
    const { serverSeconds } = await denylist.version(callOptions)
    const defaults = defaultsAt(serverSeconds)
    const entries = lines.map((line) => entryOf(line, { ...defaults, ...line.json }, serverSeconds))
    const denied = await denylist.deny(entries, callOptions)
    const { version } = denied
    const written = fileReportOf(denied.entries, version)
    return awaitReceivers(access, { version, waitMs, written })
  })
}

interface Line {
  /** Starts at 1. */
  readonly number: number
  readonly json: Readonly<Record<string, unknown>>
}

/**
 * Skips empty lines.
 *
 * @throws CommandFailure (2)
 */
function splitLines(text: string): Line[] {
  const texts = text.split(/\r?\n/).map((line, index) => ({ line, number: index + 1 }))
  const filled = texts.filter(({ line }) => line.trim() !== '')
  if (filled.length < 1 || filled.length > MAX_LIST_LENGTH) {
    throw usageError('file', `--file must name a file of 1 to ${MAX_LIST_LENGTH} lines`)
  }
  return filled.map(({ line, number }) => ({ number, json: objectOf(line, number) }))
}

function objectOf(line: string, number: number): Record<string, unknown> {
  const json = parseJson(line)
  if (isObject(json)) return json
  throw usageError('file', `line ${number} of --file is not a JSON object`)
}

type Defaults = (serverSeconds: number) => Partial<DenylistEntry>

/** @throws CommandFailure (2) */
async function readDefaults(context: CommandContext): Promise<Defaults> {
  const { arguments: args, env } = context
  const isNamed = ['issuer', 'policy'].some((name) => args.text(name) !== undefined)
  const issuer = isNamed ? shortText('the issuer', (await readIssuer(context)).issuer) : undefined
  const reason = args.text('reason')
  const duration = args.text('for')
  const endAt = duration === undefined ? undefined : readEnd(duration)
  const by = args.text('by') ?? userName(env)
  return (serverSeconds) => ({
    by,
    at: Math.floor(serverSeconds),
    ...(issuer !== undefined && { issuer }),
    ...(reason !== undefined && { reason }),
    ...(endAt !== undefined && { until: endAt(serverSeconds) }),
  })
}

/** @throws CommandFailure (2) with the number of the line, without its text. */
function entryOf({ number }: Line, input: unknown, serverSeconds: number): DenylistEntry {
  const entry = checked(number, input)
  if (entry.until !== null && entry.until <= serverSeconds) {
    throw usageError('file', `line ${number} of --file: until must be later than now`)
  }
  // Called for its check: a cut-off far in the future would deny tokens that are not issued yet.
  if (typeof entry.value === 'number')
    issuedBeforeAt({ kind: 'second', second: entry.value }, serverSeconds)
  return entry
}

function checked(number: number, input: unknown): DenylistEntry {
  try {
    return checkEntry(input)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    const fault = error.message.replace(/^denylist entry: /, '')
    throw usageError('file', `line ${number} of --file: ${fault}`)
  }
}

function fileReportOf(entries: readonly DeniedEntry[], version: number): Report {
  const earlier = entries.filter(({ isEarlier }) => isEarlier)
  const rows = earlier.map(({ entry: { kind, value, issuer, until, by, reason } }) => [
    kind,
    formatValue(value),
    issuer,
    formatUntil(until),
    by,
    reason,
  ])
  const count = entries.length === 1 ? '1 entry' : `${entries.length} entries`
  const lines = [`Denied ${count}`]
  if (rows.length > 0) {
    lines.push(
      `An earlier entry stays in force for ${rows.length} of them:`,
      ...columns(rows, '  '),
    )
  }
  return { lines, json: { entries, version } }
}
