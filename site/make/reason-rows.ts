import { headingLine } from './piece.js'

const TABLE_OF_REASONS = /^\| (?:reason|found|type|operation|`code`) \|.*(?:\n\|.*)+/gm

/** Replaces each table of reasons by a heading for each reason, with its columns below. */
export const rowsAsHeadings = (markdown: string): string =>
  markdown.replaceAll(TABLE_OF_REASONS, (table) => {
    const [head, , ...rows] = table.split('\n').map(cellsOf)
    return rows.map((cells) => sectionOf(head ?? [], cells)).join('\n\n')
  })

/** One paragraph a column, so that a narrow screen needs no second direction. */
function sectionOf(head: readonly string[], [reason = '', ...cells]: readonly string[]): string {
  const told = cells.flatMap((cell, index) =>
    cell === '' ? [] : [`**${capitalized(head[index + 1] ?? '')}:** ${cell}`],
  )
  return [headingLine(4, reason, reason.replaceAll('`', '')), ...told].join('\n\n')
}

const capitalized = (text: string): string => text.slice(0, 1).toUpperCase() + text.slice(1)

/** The cells of a row; `\|` does not end one. */
const cellsOf = (row: string): readonly string[] =>
  row
    .trim()
    .replaceAll(/^\||\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim())
