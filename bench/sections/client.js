import { median, ratioOf } from '../figures.js'
import { startApp } from '../measure.js'
import { LOAD_CORE, startNode } from '../processes.js'
import { atMost, printTable } from '../table.js'

const HEATS = 3
const TURNS = 80
const MAX_RATIO = 1.1
const MAX_CPU = 1.15

/** What `serviceFetch` adds to the time that a call takes, and to the processor time of its process. */
export async function client(bench) {
  const rows = []
  rows.push(await rowOf(bench, { label: 'GET', kind: 'read', app: 'read', path: '/orders/17' }))
  rows.push(
    await rowOf(bench, { label: 'POST', kind: 'write', app: 'plainWrite', path: '/orders' }),
  )
  const heads = [
    'one call after the other',
    'fetch, µs',
    'serviceFetch, µs',
    'ratio',
    'heats',
    'aim',
    'CPU',
    'aim',
    'by hand',
    'CPU',
  ]
  printTable(heads, rows)
}

async function rowOf(bench, { label, kind, app, path }) {
  const heats = []
  for (let heat = 0; heat < HEATS; heat += 1) heats.push(await runHeat(bench, { kind, app, path }))
  const all = [0, 1, 2].map((index) => median(heats.map(({ times }) => times[index])))
  const ratios = heats.map(({ times: [plain, ours] }) => median([ours]) / median([plain]))
  const figure = (all[1] / all[0]).toFixed(2)
  const spread = `${Math.min(...ratios).toFixed(2)}-${Math.max(...ratios).toFixed(2)}`
  const cells = all.slice(0, 2).map((ms) => (ms * 1000).toFixed(0))
  const [plain, ours, byHand] = [0, 1, 2].map((index) => heats.map(({ cpu }) => cpu[index]))
  const cpu = ratioOf(ours, plain).ratio.toFixed(2)
  const aims = [atMost(MAX_RATIO, Number(figure)), cpu, atMost(MAX_CPU, Number(cpu))]
  const ofByHand = [(all[1] / all[2]).toFixed(2), ratioOf(ours, byHand).ratio.toFixed(2)]
  return [label, ...cells, figure, spread, ...aims, ...ofByHand]
}

/** New processes each time: two of the same program differ. */
async function runHeat(bench, { kind, app, path }) {
  const [token] = await bench.issuer.mint(1)
  const caller = startNode(LOAD_CORE, new URL('../caller.js', import.meta.url).pathname)
  const { node, port } = await startApp(bench, { app })
  try {
    const url = `http://127.0.0.1:${port}${path}`
    const question = { build: bench.settings.build, url, token, kind, turns: TURNS }
    const { fault, ...costs } = await caller.ask(question)
    if (fault !== undefined) throw new Error(fault)
    return costs
  } finally {
    await Promise.all([caller.stop(), node.stop()])
  }
}
