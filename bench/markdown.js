/** A Markdown table, first column to the left, the others to the right. */
export function tableLines({ columns, rows }) {
  const lines = [columns, ...rows]
  const widths = columns.map((_, column) => Math.max(4, ...lines.map((row) => row[column].length)))
  const pad = (cell, column) =>
    column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])
  const rule = widths.map((width, column) => '-'.repeat(width - 1) + (column === 0 ? '-' : ':'))
  const [head, ...body] = lines.map((row) => row.map(pad))
  return [head, rule, ...body].map((row) => `| ${row.join(' | ')} |`)
}

/** On what the figures were measured. */
export function headLines({ node, versions, machine, isPinned, load }) {
  const programs = [`Node ${node}`, ...Object.entries(versions).map((entry) => entry.join(' '))]
  const pinning = isPinned
    ? 'Server on core 0, load and Redis on core 1'
    : 'NOT PINNED to cores: the figures say little'
  return [
    '# Results',
    '',
    `${programs.join(', ')}; ${machine.cores} cores, ${machine.cpu}.`,
    `${pinning}; load of the machine at the start ${load.start.toFixed(1)}.`,
  ]
}

export const endLine = ({ minutes, load }) =>
  `${minutes.toFixed(1)} minutes; load of the machine at the end ${load.end.toFixed(1)}.`

/** The page of results, as a run prints it. */
export function resultsPage(report) {
  const tables = report.sections.flatMap((section) => section.tables)
  const lines = [...headLines(report), ...tables.flatMap((table) => ['', ...tableLines(table)])]
  return `${[...lines, '', endLine(report)].join('\n')}\n`
}
