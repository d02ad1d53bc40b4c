import { readFileSync } from 'node:fs'
import { tableLines } from './markdown.js'
import { addTable } from './report.js'

const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'))

/** Only the figures themselves go to standard output where they are wanted as JSON. */
let print = console.log
export const printBeside = () => {
  print = console.error
}
export function printLines(lines) {
  for (const line of lines) print(line)
}

/** A dependency of the benchmark, and its version. */
export const versionIn = (name) => dependencies[name]

/** A dependency of the benchmark with its version. */
export const versionOf = (name) => `${name} ${versionIn(name)}`

/** Prints a Markdown table, and notes it for the report. */
export function printTable(columns, rows) {
  addTable(columns, rows)
  printLines(['', ...tableLines({ columns, rows: rows.map((row) => row.map(String)) })])
}

export const atLeast = (aim, figure) => aimText(aim, figure >= aim)
export const atMost = (aim, figure) => aimText(aim, figure <= aim)

function aimText(aim, isReached) {
  if (aim === undefined) return ''
  return isReached ? String(aim) : `${aim}, missed`
}
