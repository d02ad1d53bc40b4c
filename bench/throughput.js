import { cheapest } from './figures.js'
import { startApp } from './measure.js'
import { atLeast, printTable } from './table.js'

const HEATS = Number(process.env.BENCH_HEATS ?? 3)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 6)
const WARM_UP_MS = 1500

/**
 * Lets contenders take turns and prints how many requests a second each answers, and the processor time
 * of a request, in the server and Postgres together. In a round each has one turn, in every other round
 * backwards, so that neighbours are compared; the ratio of two is the median of those of the rounds, that
 * of their costs the one of the cheapest turns. A contender is `{ label, app, settings, kind, ratios }`,
 * with what it is compared with: `{ to, aim, costAim }`, a label and what is to be reached.
 */
export async function compareThroughput(bench, { title, contenders, connections, turnMs = 1000 }) {
  const heats = []
  const turn = { connections, durationMs: turnMs }
  for (let heat = 0; heat < HEATS; heat += 1)
    heats.push(...(await runHeat(bench, contenders, turn)))
  const turnsOf = (label) => {
    const index = contenders.findIndex((each) => each.label === label)
    const turns = heats.map((round) => round[index])
    return { rates: turns.map(({ rate }) => rate), cost: cheapest(turns.map(({ cost }) => cost)) }
  }
  const rows = contenders.flatMap(({ label, ratios = [] }) => {
    const { rates, cost } = turnsOf(label)
    const begin = [label, Math.round(quantile(rates, 0.5)), Math.round(cost)]
    if (ratios.length === 0) return [[...begin, '', '', '', '', '', '']]
    return ratios.map(({ to, aim, costAim }) => {
      const other = turnsOf(to)
      const costRatio = (other.cost / cost).toFixed(2)
      const costCells = [costRatio, atLeast(costAim, Number(costRatio))]
      return [...begin, to, ...ratioCells(rates, other.rates, aim), ...costCells]
    })
  })
  const heads = [title, 'a second', 'µs', 'to', 'ratio', 'middle half', 'aim', 'ratio of µs', 'aim']
  printTable(heads, rows)
}

function ratioCells(ours, theirs, aim) {
  const ratios = ours.map((rate, round) => rate / theirs[round])
  const ratio = quantile(ratios, 0.5).toFixed(2)
  const spread = [0.25, 0.75].map((part) => quantile(ratios, part).toFixed(2)).join('-')
  return [ratio, spread, atLeast(aim, Number(ratio))]
}

async function runHeat(bench, contenders, turn) {
  const servers = []
  try {
    for (const contender of contenders) {
      servers.push({ ...(await startApp(bench, contender)), contender })
    }
    for (const server of servers) await takeTurn(bench, server, { ...turn, durationMs: WARM_UP_MS })
    const rounds = []
    for (let round = 0; round < ROUNDS; round += 1) {
      const rates = []
      const order = [...servers.keys()]
      if (round % 2 === 1) order.reverse()
      for (const index of order) rates[index] = await takeTurn(bench, servers[index], turn)
      rounds.push(rates)
    }
    return rounds
  } finally {
    await Promise.all(servers.map(({ node }) => node.stop()))
  }
}

/** Answers a second, and microseconds of processor time for each. */
async function takeTurn(bench, { node, port, contender }, turn) {
  const { kind = 'write', app } = contender
  const requests = [{ kind, pool: 'few', status: 201 }]
  const spent = async () => (await node.ask({})).cpuMicroseconds + bench.postgres.cpuMicroseconds()
  const before = await spent()
  const { counts, elapsedMs, fault } = await bench.load.ask({ turn: { ...turn, port, requests } })
  if (fault !== undefined) throw new Error(`${app} answered otherwise: ${fault}`)
  const cost = ((await spent()) - before) / counts[0]
  return { rate: (counts[0] * 1000) / elapsedMs, cost }
}

export function quantile(figures, part) {
  const sorted = [...figures].sort((one, other) => one - other)
  const at = (sorted.length - 1) * part
  const [below, above] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]]
  return below + (above - below) * (at - Math.floor(at))
}
