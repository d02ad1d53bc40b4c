import { readFileSync } from 'node:fs'
import { cheapest, measure, median } from './measure.js'

const readPackage = (file) => JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'))
const versions = {
  ...readPackage('../package.json').devDependencies,
  ...readPackage('package.json').dependencies,
}

/** A package that is measured with, and its version. */
export const versionOf = (name) => `${name} ${versions[name]}`

const COLUMNS = ['figure', 'ours', 'other', 'ratio', 'heats', 'goal']

/** The rows of all sections, printed as one Markdown table. */
export function createTable() {
  const rows = []
  return {
    /** `row` is `{ figure, ours, other, ratio, heats, goal, isCost }`; of a cost, less is better. */
    add({ figure, ours, other, ratio, heats = [ratio], goal, isCost = false }) {
      const rounded = Number(ratio.toFixed(2))
      const isReached = isCost ? rounded <= goal : rounded >= goal
      const spread = [Math.min(...heats), Math.max(...heats)]
        .map((each) => each.toFixed(2))
        .join('-')
      const aim = goal === undefined ? '' : `${goal}${isReached ? '' : ', missed'}`
      rows.push([figure, ours.toFixed(1), other.toFixed(1), ratio.toFixed(2), spread, aim])
    },
    print() {
      for (const line of markdown([COLUMNS, ...rows])) console.log(line)
    },
  }
}

/** First column to the left, the others to the right. */
function markdown(rows) {
  const widths = COLUMNS.map((_, column) => Math.max(...rows.map((row) => row[column].length), 4))
  const line = (cells) => `| ${cells.join(' | ')} |`
  const [head, ...body] = rows.map((row) =>
    line(
      row.map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column]),
      ),
    ),
  )
  const rule = line(
    widths.map((width, column) => '-'.repeat(width - 1) + (column === 0 ? '-' : ':')),
  )
  return [head, rule, ...body]
}

/**
 * Measures one app of ours beside others; a row for each: the cost of the other over ours, so that above 1 ours is the
 * cheaper one. Where another build of this package is named, its app takes the place of the peers.
 */
export async function compare(bench, { ours, others, options }) {
  const rivals = bench.otherBuild === undefined ? others : [onOtherBuild(bench, ours)]
  const [own, ...measured] = await measure(bench, [ours, ...rivals], options)
  for (const [index, { label, goal }] of rivals.entries()) {
    bench.table.add({
      figure: `${ours.label}, of ${label}`,
      ours: cheapest(own),
      other: cheapest(measured[index]),
      ratio: cheapest(measured[index]) / cheapest(own),
      heats: own.map((turns, heat) => cheapest(measured[index][heat]) / cheapest(turns)),
      goal,
    })
  }
  return [own, ...measured]
}

const onOtherBuild = ({ otherBuild }, ours) => ({
  ...ours,
  label: 'the other build',
  settings: { ...ours.settings, build: otherBuild },
})

/** Adds a row for requests a second, each turn beside the same turn of the other. */
export function addRates({ table }, { figure, ours, other, goal }) {
  const rates = (heats) => heats.flat().map(({ rate }) => rate)
  const ratiosOf = (turns, heat) => turns.map(({ rate }, turn) => rate / other[heat][turn].rate)
  table.add({
    figure,
    ours: median(rates(ours)),
    other: median(rates(other)),
    ratio: median(ours.flatMap(ratiosOf)),
    heats: ours.map((turns, heat) => median(ratiosOf(turns, heat))),
    goal,
  })
}
