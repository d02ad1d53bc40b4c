import { cheapest, median, ratioOf } from '../figures.js'
import { SERVER_CORE, startNode } from '../processes.js'
import { atLeast, printTable } from '../table.js'

const HEATS = 3
const TURNS_PER_HEAT = Number(process.env.BENCH_TURNS ?? 30)
const TURN_MS = Number(process.env.BENCH_MS ?? 100)
const WARM_UP_MS = 1000
const LEAST_RATIO = 0.3

/** What the validation of a record costs beside reading it. */
export async function migrationValidate(bench) {
  const heats = []
  for (let heat = 0; heat < HEATS; heat += 1) heats.push(await runHeat(bench))
  const [parsed, validated] = [0, 1].map((index) => heats.map((costs) => costs[index]))
  const { ratio, least, most } = ratioOf(parsed, validated)
  const figure = ratio.toFixed(2)
  const spread = `${least.toFixed(2)}-${most.toFixed(2)}`
  printTable(
    ['records of a migration', 'µs', 'median', 'ratio', 'heats', 'aim'],
    [
      ['JSON.parse', ...costCells(parsed), '', '', ''],
      [
        'JSON.parse and validateUser',
        ...costCells(validated),
        figure,
        spread,
        atLeast(LEAST_RATIO, Number(figure)),
      ],
    ],
  )
}

/** A process for each, in turns. */
async function runHeat(bench) {
  const file = new URL('../validator.js', import.meta.url).pathname
  const readers = [false, true].map((validates) => ({
    validates,
    node: startNode(SERVER_CORE, file),
  }))
  try {
    for (const reader of readers) await takeTurn(bench, reader, WARM_UP_MS)
    const costs = readers.map(() => [])
    for (let turn = 0; turn < TURNS_PER_HEAT; turn += 1) {
      for (const [index, reader] of readers.entries()) {
        costs[index].push(await takeTurn(bench, reader, TURN_MS))
      }
    }
    return costs
  } finally {
    await Promise.all(readers.map(({ node }) => node.stop()))
  }
}

async function takeTurn(bench, { node, validates }, turnMs) {
  const { dist } = bench.settings
  const { microseconds, fault } = await node.ask({ dist, validates, turnMs })
  if (fault !== undefined) throw new Error(fault)
  return microseconds
}

const costCells = (costs) => [cheapest(costs).toFixed(1), median(costs).toFixed(1)]
