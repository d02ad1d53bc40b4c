import { readFileSync } from 'node:fs'

const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))

/** A dependency of the benchmark with its version. */
export const versionOf = (name) => `${name} ${dependencies[name]}`

/** Prints a Markdown table, first column to the left, the others to the right. */
export function printTable(heads, rows) {
  const lines = [heads, ...rows].map((row) => row.map(String))
  const widths = heads.map((_, column) => Math.max(4, ...lines.map((row) => row[column].length)))
  const pad = (cell, column) =>
    column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])
  const rule = widths.map((width, column) => '-'.repeat(width - 1) + (column === 0 ? '-' : ':'))
  const [head, ...body] = lines.map((row) => row.map(pad))
  console.log('')
  for (const row of [head, rule, ...body]) console.log(`| ${row.join(' | ')} |`)
}

export const atLeast = (aim, figure) => aimText(aim, figure >= aim)
export const atMost = (aim, figure) => aimText(aim, figure <= aim)

function aimText(aim, isReached) {
  if (aim === undefined) return ''
  return isReached ? String(aim) : `${aim}, missed`
}
