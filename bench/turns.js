import { cheapest, median, ratioOf } from './figures.js'
import { SERVER_CORE, startNode } from './processes.js'
import { atLeast, printTable } from './table.js'

const HEATS = 3
const TURNS_PER_HEAT = Number(process.env.BENCH_TURNS ?? 30)
const TURN_MS = Number(process.env.BENCH_MS ?? 100)
const WARM_UP_MS = 1000

/**
 * Prints what two ways to work cost, the plain one first. Each has a process of its own of the same
 * program, which is asked over IPC with `question`, `isOurs` and `turnMs`, and answers with
 * `microseconds` of processor time for a piece of work.
 */
export async function compareTurns({ title, program, question, labels, aim }) {
  const heats = []
  for (let heat = 0; heat < HEATS; heat += 1) heats.push(await runHeat(program, question))
  const [plain, ours] = [0, 1].map((index) => heats.map((costs) => costs[index]))
  const { ratio, least, most } = ratioOf(plain, ours)
  const figure = ratio.toFixed(2)
  const spread = `${least.toFixed(2)}-${most.toFixed(2)}`
  printTable(
    [title, 'µs', 'median', 'ratio', 'heats', 'aim'],
    [
      [labels[0], ...costCells(plain), '', '', ''],
      [labels[1], ...costCells(ours), figure, spread, atLeast(aim, Number(figure))],
    ],
  )
}

async function runHeat(program, question) {
  const file = new URL(program, import.meta.url).pathname
  const workers = [false, true].map((isOurs) => ({ isOurs, node: startNode(SERVER_CORE, file) }))
  const takeTurn = async ({ node, isOurs }, turnMs) => {
    const { microseconds, fault } = await node.ask({ ...question, isOurs, turnMs })
    if (fault !== undefined) throw new Error(fault)
    return microseconds
  }
  try {
    for (const worker of workers) await takeTurn(worker, WARM_UP_MS)
    const costs = workers.map(() => [])
    for (let turn = 0; turn < TURNS_PER_HEAT; turn += 1) {
      for (const [index, worker] of workers.entries()) {
        costs[index].push(await takeTurn(worker, TURN_MS))
      }
    }
    return costs
  } finally {
    await Promise.all(workers.map(({ node }) => node.stop()))
  }
}

const costCells = (costs) => [cheapest(costs).toFixed(1), median(costs).toFixed(1)]
