import { constants } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { MigrationCounts } from '../../base/decision/migration-event.js'
import { syncFolder } from '../../migration/journal/file-journal.js'
import type { Migration } from '../../migration/run/migration.js'
import type {
  IdentityReport,
  IdentityState,
  MigrationReport,
  RowLeft,
} from '../../migration/run/report.js'
import type { MigrationState } from '../../migration/run/state/journal-entry.js'
import type { CommandResult, ExitCode } from '../frame/command.js'
import { usageError } from '../frame/command-failure.js'
import { columns } from '../output/columns.js'
import { formatDuration, formatTime } from '../output/format-time.js'

/** The exit code for each state of a run. */
export const EXIT_CODES: Readonly<Record<MigrationState, ExitCode>> = {
  complete: 0,
  preflight_failed: 1,
  core_fault: 3,
  to_correct: 4,
  to_reconcile: 5,
  stalled: 6,
  interrupted: 130,
}

/** The result of a step, for the shell and for people. */
export interface ExitStatus {
  readonly exitCode: ExitCode
  readonly words: string
}

export const verdictOn = ({ state }: MigrationReport): ExitStatus => ({
  exitCode: EXIT_CODES[state],
  words: state,
})

/** The result of `check`: the number of faults among the findings, and of invalid records. */
export function verdictOfCheck(report: MigrationReport): ExitStatus {
  const { state, findings, counts } = report
  if (state === 'core_fault') return verdictOn(report)
  const faults = findings.filter(({ severity }) => severity === 'fault').length
  const words = [numbered(faults, 'fault'), numbered(counts.invalid, 'invalid record')]
    .filter((part) => part !== '')
    .join(', ')
  if (words === '') return { exitCode: 0, words: 'no faults' }
  return { exitCode: faults > 0 ? EXIT_CODES.preflight_failed : EXIT_CODES.to_correct, words }
}

function numbered(number: number, noun: string): string {
  if (number === 0) return ''
  return `${formatNumber(number)} ${noun}${number === 1 ? '' : 's'}`
}

/** Whether a state needs a person, in the order of a report: these come first, the finished ones last. */
const NEEDS_PERSON: Readonly<Record<IdentityState, boolean>> = {
  invalid: true,
  failed: true,
  missing: true,
  differs: true,
  shared: true,
  pending: false,
  staged: false,
  left_out: false,
  accepted: false,
  reconciled: false,
}

const STATES = Object.keys(NEEDS_PERSON) as IdentityState[]

const DIGITS = new Intl.NumberFormat('en-US')

/** Formats a number with commas between thousands. */
export const formatNumber = (number: number): string => DIGITS.format(number)

/** Returns the counts that are not 0. */
const nonZeroCounts = (counts: MigrationCounts): [name: string, count: string][] =>
  STATES.filter((name) => counts[name] > 0).map((name) => [
    name.replace('_', ' '),
    formatNumber(counts[name]),
  ])

export const formatCounts = (counts: MigrationCounts): string =>
  nonZeroCounts(counts)
    .map((words) => words.join(' '))
    .join(', ')

/** The parts of a report that are shown to a person. */
interface ShownReport {
  readonly report: MigrationReport
  /** The state of the run, in words. */
  readonly standing: string
  readonly needing: NeedingPerson
  /** The folder of the report files. */
  readonly directory: string
}

export const reportLines = ({ report, standing, needing, directory }: ShownReport): string[] => [
  ...summaryLines(report, standing),
  ...spaced(preflightFindingLines(report.findings)),
  ...spaced(identityLines(needing)),
  ...spaced(stalledRowLines(report.rows, MAX_SHOWN)),
  ...spaced(report.advice),
  '',
  ...columns([
    ['Report', join(directory, REPORT_FILE)],
    ...(needing.count === 0 ? [] : [['Needs action', join(directory, NEEDS_PERSON_FILE)]]),
    ['Accounts', join(directory, ACCOUNTS_FILE)],
  ]),
]

/** The state of the run, and the number of identities in each state. */
function summaryLines(
  { identities, counts, startedAt, reportedAt }: MigrationReport,
  standing: string,
): string[] {
  const lasted = formatDuration(Math.max(0, reportedAt - startedAt) / 1000)
  return columns([
    ['State', standing],
    ['Started', `${formatTime(Math.floor(startedAt / 1000))}, ${lasted} before this report`],
    ['Identities', formatNumber(identities)],
    ...nonZeroCounts(counts).map(([name, count]) => [`  ${name}`, count]),
  ])
}

/** The findings that stop the run, or that a person should know before it. */
function preflightFindingLines(findings: MigrationReport['findings']): string[] {
  const rows = findings.map(({ severity, code, line, records, message }) => [
    severity,
    code,
    line === undefined ? '' : `line ${line}`,
    records === undefined || records === 1 ? '' : `${formatNumber(records)} records`,
    message,
  ])
  return columns(rows)
}

function identityLines({ count, shown }: NeedingPerson): string[] {
  const rows = shown.map((identity) => [
    formatPlace(identity),
    identity.externalUserId,
    identity.state,
    whyOf(identity),
  ])
  return table(['line', 'external id', 'state', 'reason'], rows, count)
}

/** A table of the first of `count` rows, or nothing if there are none. */
function table(heading: readonly string[], rows: readonly string[][], count: number): string[] {
  if (count === 0) return []
  const more = count - rows.length
  return [...columns([heading, ...rows]), ...(more > 0 ? [`and ${formatNumber(more)} more`] : [])]
}

const formatPlace = ({ line, corrections }: IdentityReport): string =>
  corrections === undefined ? String(line) : `${basename(corrections)}:${line}`

function whyOf({ code, text, errors = [], differences = [], heldBy }: IdentityReport): string {
  // The texts of most of the core's codes begin with them.
  const isNamed = code !== undefined && text?.startsWith(code)
  const parts = [
    ...(code === undefined || isNamed ? [] : [code]),
    ...(text === undefined ? [] : [text]),
    ...errors.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`)),
    ...(differences.length === 0 ? [] : [differences.join(', ')]),
    ...(heldBy === undefined ? [] : [`held by ${heldBy}`]),
  ]
  return parts.join('; ')
}

/** Puts an empty line before the lines, if there are any. */
const spaced = (lines: readonly string[]): string[] => (lines.length === 0 ? [] : ['', ...lines])

/** Of identities and of rows. The files of the report name all. */
const MAX_SHOWN = 20

/** The rows that still wait after a stall. */
function stalledRowLines(rows: readonly RowLeft[] = [], shown: number = rows.length): string[] {
  const cells = rows
    .slice(0, shown)
    .map(({ id, externalUserId, status, heldBy }) => [
      id,
      externalUserId,
      status,
      heldBy === undefined ? '' : `held by ${heldBy}`,
    ])
  return table(['row', 'external id', 'status', ''], cells, rows.length)
}

/** The error without `--yes`; the exit code is 2, as for an invalid command. */
export const NOT_CONFIRMED = 'nothing was deleted: add --yes'

/** Lists the rows that `unblock --yes` deletes. */
export function listStalledRows({ state, rows = [] }: MigrationReport): CommandResult {
  const json = { step: 'unblock', state, rows, isDeleted: false }
  if (rows.length === 0) {
    const errorLine = 'no run has stalled: there are no rows to delete'
    return { exitCode: 2, lines: [], json, errorLine }
  }
  const heading = '--yes deletes these rows and looks up each of their users:'
  const lines = [heading, ...stalledRowLines(rows)]
  return { exitCode: 2, lines, json, errorLine: NOT_CONFIRMED }
}

/** The identities that need a person. */
export interface NeedingPerson {
  readonly count: number
  /** The first 20. */
  readonly shown: readonly IdentityReport[]
}

export const NO_ACTION_NEEDED: NeedingPerson = { count: 0, shown: [] }

/**
 * Rewrites `report.json`, `report.ndjson` (each identity that needs a person) and `accounts.ndjson`
 * (each known account).
 *
 * @throws CommandFailure (2)
 */
export async function writeReports(
  directory: string,
  report: MigrationReport,
  migration: Pick<Migration, 'identities'>,
): Promise<NeedingPerson> {
  const shown: IdentityReport[] = []
  let count = 0
  async function* needing(): AsyncGenerator<string> {
    for await (const identity of migration.identities()) {
      if (!NEEDS_PERSON[identity.state]) continue
      count += 1
      if (shown.length < MAX_SHOWN) shown.push(identity)
      yield `${JSON.stringify(identity)}\n`
    }
  }
  async function* accounts(): AsyncGenerator<string> {
    for await (const { externalUserId, state, coreUserId } of migration.identities()) {
      if (coreUserId !== undefined)
        yield `${JSON.stringify({ externalUserId, coreUserId, state })}\n`
    }
  }
  await replaceFile(join(directory, NEEDS_PERSON_FILE), needing())
  await replaceFile(join(directory, ACCOUNTS_FILE), accounts())
  await replaceFile(join(directory, REPORT_FILE), [`${JSON.stringify(report, null, 2)}\n`])
  return { count, shown }
}

/** In the folder of the journal. */
const REPORT_FILE = 'report.json'
const NEEDS_PERSON_FILE = 'report.ndjson'
const ACCOUNTS_FILE = 'accounts.ndjson'

const OWNER_ONLY_MODE = 0o600

/** Writes a file that only its owner can read. It gets its name once it is complete and on disk. */
async function replaceFile(
  path: string,
  lines: Iterable<string> | AsyncIterable<string>,
): Promise<void> {
  const partPath = `${path}.part`
  // Overwrites the partial file of a killed process, which is of no use.
  const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW = 0 } = constants
  const flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW
  try {
    const file = await open(partPath, flags, OWNER_ONLY_MODE)
    await pipeline(lines, file.createWriteStream({ flush: true }))
    await rename(partPath, path)
    await syncFolder(dirname(path))
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException
    // Any other error is of the source.
    if (syscall === undefined) throw error
    const message = `${basename(path)} cannot be written (${code}); the journal contains all completed work, and \`status\` writes the file again`
    throw usageError(message, 'file')
  }
}
