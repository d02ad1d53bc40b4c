import type { MigrationReport, RowLeft } from '../../migration/run/report.js'
import type { CommandResult } from '../frame/command.js'
import { columns } from '../output/columns.js'
import { numberInWords } from './format-counts.js'

const SHOWN = 20

/** The rows that still wait after a stall, as a table with a heading row. */
export function stalledRowLines(rows: readonly RowLeft[] = [], shown: number = SHOWN): string[] {
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
