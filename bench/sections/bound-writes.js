import { cheapest, median, ratioOf } from '../figures.js'
import { startApp } from '../measure.js'
import { freePort, LOAD_CORE, startNode } from '../processes.js'
import { atLeast, printTable } from '../table.js'

const HEATS = 3
const TURNS_PER_HEAT = Number(process.env.BENCH_TURNS ?? 30)
/** Longer than elsewhere: three processes take part in a write. */
const TURN_MS = 3 * Number(process.env.BENCH_MS ?? 100)
const WARM_UP_MS = 2000
const MIN_RATIO = 2
const API_KEY = 'an-api-key-of-the-benchmark'
const API_DOMAIN = 'https://api.example.com'

const SINGLE_USE = { label: 'a new token for each write', source: { singleUse: true } }
const BOUND = { label: 'one bound token, a new proof for each write', source: { bind: 'dpop' } }

const fileOf = (name) => new URL(`../${name}`, import.meta.url).pathname

/** What a write behind `requireSingleUse` costs caller, core and receiver together. */
export async function boundWrites(bench) {
  const core = startNode(LOAD_CORE, fileOf('core.js'), [API_KEY], ['--import', 'tsx'])
  try {
    const addresses = await core.answer()
    const heats = []
    for (let heat = 0; heat < HEATS; heat += 1) {
      heats.push(await runHeat(bench, { ...addresses, node: core }))
    }
    const [singleUse, bound] = [0, 1].map((index) => heats.map((costs) => costs[index]))
    const { ratio, least, most } = ratioOf(singleUse, bound)
    const figure = ratio.toFixed(2)
    const spread = `${least.toFixed(2)}-${most.toFixed(2)}`
    const cells = (costs) => [cheapest(costs).toFixed(0), median(costs).toFixed(0)]
    printTable(
      ['single-use writes: caller, core, receiver', 'µs', 'median', 'ratio', 'heats', 'aim'],
      [
        [BOUND.label, ...cells(bound), '', '', ''],
        [SINGLE_USE.label, ...cells(singleUse), figure, spread, atLeast(MIN_RATIO, ratio)],
      ],
    )
  } finally {
    await core.stop()
  }
}

async function runHeat(bench, core) {
  const pairs = []
  try {
    for (const { source } of [SINGLE_USE, BOUND]) pairs.push(await startPair(bench, core, source))
    const takeTurn = (pair, durationMs) => costOfTurn({ ...pair, core: core.node }, durationMs)
    for (const pair of pairs) await takeTurn(pair, WARM_UP_MS)
    const costs = pairs.map(() => [])
    for (let turn = 0; turn < TURNS_PER_HEAT; turn += 1) {
      for (const [index, pair] of pairs.entries()) costs[index].push(await takeTurn(pair, TURN_MS))
    }
    return costs
  } finally {
    await Promise.all(pairs.flatMap(({ caller, receiver }) => [caller.stop(), receiver.stop()]))
  }
}

/** A caller and its receiver, whose port is part of the URL that proofs are made for. */
async function startPair(bench, { url, jwksUri }, source) {
  const port = await freePort()
  const senderConstraint = source.bind && { dpop: { baseUrls: [`http://127.0.0.1:${port}`] } }
  const settings = { port, issuer: API_DOMAIN, jwksUri, senderConstraint }
  const { node: receiver } = await startApp(bench, { app: 'singleUseWrite', settings })
  const { build } = bench.settings
  const given = {
    build,
    core: { baseUrl: url, apiKey: API_KEY },
    apiDomain: API_DOMAIN,
    port,
    source,
  }
  const caller = startNode(LOAD_CORE, fileOf('writer.js'), [JSON.stringify(given)])
  return { caller, receiver }
}

/** Microseconds of processor time for a write, of all three. */
async function costOfTurn({ caller, receiver, core }, durationMs) {
  const others = async () => {
    const asked = [await receiver.ask({}), await core.ask({})]
    return asked.reduce((sum, { cpuMicroseconds }) => sum + cpuMicroseconds, 0)
  }
  const start = { others: await others(), caller: await caller.ask({}) }
  const end = { caller: await caller.ask({ durationMs }), others: await others() }
  if (end.caller.fault !== undefined) throw new Error(end.caller.fault)
  const ofCaller = end.caller.cpuMicroseconds - start.caller.cpuMicroseconds
  return (ofCaller + end.others - start.others) / end.caller.writes
}
