import { cpuPerRequest, cpuRatioOf, ratePerSecond, ratioOf } from './measure.js'

/** Prints rows under a title, first column to the left, the others to the right. */
export function printTable(title, heads, rows) {
  const widths = heads.map((head, column) =>
    Math.max(head.length, ...rows.map((row) => String(row[column]).length)),
  )
  const line = (cells) =>
    cells
      .map((cell, column) =>
        column === 0 ? String(cell).padEnd(widths[column]) : String(cell).padStart(widths[column]),
      )
      .join('   ')
  console.log(`\n${title}\n`)
  console.log(`  ${line(heads)}`)
  for (const row of rows) console.log(`  ${line(row)}`)
}

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 })

export const count = (value) => whole.format(value)

export const spread = ({ least, most }) => `${least.toFixed(2)}-${most.toFixed(2)}`

export function goal(ratio, atLeast) {
  if (atLeast === undefined) return ''
  return `${ratio >= atLeast ? 'yes' : 'NO'}, at least ${atLeast.toFixed(2)}`
}

/** A row: rate, processor time, and its ratio to another contender of the same run. */
export function ratioRow(measured, base, atLeast) {
  const own = [measured.label, count(ratePerSecond(measured)), cpuPerRequest(measured).toFixed(0)]
  if (base === undefined) return [...own, '', '', '', '']
  const ratio = ratioOf(measured, base)
  const byCpu = cpuRatioOf(measured, base).median.toFixed(2)
  return [...own, ratio.median.toFixed(2), spread(ratio), byCpu, goal(ratio.median, atLeast)]
}

export const ratioHeads = (name, against) => [
  name,
  'requests/s',
  'µs of CPU',
  `against ${against}`,
  'spread',
  'by CPU',
  'reached',
]
