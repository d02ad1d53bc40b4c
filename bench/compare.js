import { cheapest, median, ratioOf } from './figures.js'
import { measure } from './measure.js'
import { atLeast, printTable } from './table.js'

/**
 * Measures one app of ours beside others and prints a table. Where another build of this package is
 * named, that build takes the place of the peers.
 */
export async function compare(bench, { title, ours, others }) {
  const contenders = [ours, ...rivals(bench, ours, others)]
  const [ourCosts, ...costs] = await measure(bench, contenders)
  const rows = contenders.slice(1).map(({ label, aim }, index) => {
    const { ratio, least, most } = ratioOf(costs[index], ourCosts)
    const figure = ratio.toFixed(2)
    const spread = `${least.toFixed(2)}-${most.toFixed(2)}`
    return [label, ...costCells(costs[index]), figure, spread, atLeast(aim, Number(figure))]
  })
  const heads = [title, 'µs', 'median', 'ratio', 'heats', 'aim']
  printTable(heads, [[ours.label, ...costCells(ourCosts), '', '', ''], ...rows])
}

function rivals(bench, ours, others) {
  if (bench.otherBuild === undefined) return others
  const settings = { ...ours.settings, build: bench.otherBuild }
  const sameOfOtherBuild = { ...ours, settings, label: `the other build: ${ours.label}` }
  return [sameOfOtherBuild, ...others.filter(({ isPeer }) => !isPeer)]
}

const costCells = (costs) => [cheapest(costs).toFixed(1), median(costs).toFixed(1)]
