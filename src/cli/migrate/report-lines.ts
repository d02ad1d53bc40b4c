import { basename, join } from 'node:path'
import type { IdentityReport, MigrationReport, RowLeft } from '../../migration/run/report.js'
import type { CommandResult } from '../frame/command.js'
import { columns } from '../output/columns.js'
import { formatDuration, formatTime } from '../output/format-time.js'
import { countsThatAre, numberInWords } from './format-counts.js'
import {
  ACCOUNTS_FILE,
  NEEDS_PERSON_FILE,
  type NeedingPerson,
  REPORT_FILE,
} from './write-reports.js'

/** The parts of a report that are shown to a person. */
export interface ShownReport {
  readonly report: MigrationReport
  /** The state of the run, in words. */
  readonly standing: string
  readonly needing: NeedingPerson
  /** The folder of the report files. */
  readonly directory: string
}

export const reportLines = ({ report, standing, needing, directory }: ShownReport): string[] => [
  ...summaryLines(report, standing),
  ...findingLines(report.findings),
  ...identityLines(needing),
  ...spaced(stalledRowLines(report.rows)),
  ...adviceLines(report),
  '',
  ...columns([
    ['Report', join(directory, REPORT_FILE)],
    ...(needing.count === 0 ? [] : [['Needs action', join(directory, NEEDS_PERSON_FILE)]]),
    ['Accounts', join(directory, ACCOUNTS_FILE)],
  ]),
]

/** The state of the run, and the number of identities in each state. */
export function summaryLines(
  { identities, counts, startedAt, reportedAt }: MigrationReport,
  standing: string,
): string[] {
  const lasted = formatDuration(Math.max(0, reportedAt - startedAt) / 1000)
  return columns([
    ['State', standing],
    ['Started', `${formatTime(Math.floor(startedAt / 1000))}, ${lasted} before this report`],
    ['Identities', numberInWords(identities)],
    ...countsThatAre(counts).map(([name, count]) => [`  ${name}`, count]),
  ])
}

/** The findings that stop the run, or that a person should know before it. */
function findingLines(findings: MigrationReport['findings']): string[] {
  if (findings.length === 0) return []
  const rows = findings.map(({ severity, code, line, records, message }) => [
    severity,
    code,
    line === undefined ? '' : `line ${line}`,
    records === undefined || records === 1 ? '' : `${numberInWords(records)} records`,
    message,
  ])
  return ['', ...columns(rows)]
}

function identityLines({ count, shown }: NeedingPerson): string[] {
  if (count === 0) return []
  const rows = shown.map((identity) => [
    placeOf(identity),
    identity.externalUserId,
    identity.state,
    whyOf(identity),
  ])
  const more = count - shown.length
  return [
    '',
    ...columns([['line', 'external id', 'state', 'reason'], ...rows]),
    ...(more > 0 ? [`and ${numberInWords(more)} more`] : []),
  ]
}

const placeOf = ({ line, corrections }: IdentityReport): string =>
  corrections === undefined ? String(line) : `${basename(corrections)}:${line}`

function whyOf({ code, text, errors = [], differences = [], heldBy }: IdentityReport): string {
  const said = text ?? code
  const parts = [
    ...(said === undefined ? [] : [said]),
    ...errors.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`)),
    ...(differences.length === 0 ? [] : [differences.join(', ')]),
    ...(heldBy === undefined ? [] : [`held by ${heldBy}`]),
  ]
  return parts.join('; ')
}

const adviceLines = ({ advice }: MigrationReport): string[] => spaced(advice)

/** Puts an empty line before the lines, if there are any. */
const spaced = (lines: readonly string[]): string[] => (lines.length === 0 ? [] : ['', ...lines])

const SHOWN = 20

/** The rows that still wait after a stall, as a table with a heading row. */
function stalledRowLines(rows: readonly RowLeft[] = [], shown: number = SHOWN): string[] {
  if (rows.length === 0) return []
  const cells = rows
    .slice(0, shown)
    .map(({ id, externalUserId, status, heldBy }) => [
      id,
      externalUserId,
      status,
      heldBy === undefined ? '' : `held by ${heldBy}`,
    ])
  const more = rows.length - cells.length
  return [
    ...columns([['row', 'external id', 'status', ''], ...cells]),
    ...(more > 0 ? [`and ${numberInWords(more)} more`] : []),
  ]
}

/** Lists the rows that `unblock --yes` deletes. */
export function listStalledRows({ state, rows = [] }: MigrationReport): CommandResult {
  const json = { step: 'unblock', state, rows, isDeleted: false }
  if (rows.length === 0) {
    const errorLine = 'no run has stalled: there are no rows to delete'
    return { exitCode: 2, lines: [], json, errorLine }
  }
  const heading = '--yes deletes these rows and looks up each of their users:'
  return { exitCode: 2, lines: [heading, ...stalledRowLines(rows, rows.length)], json }
}
