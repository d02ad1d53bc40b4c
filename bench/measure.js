import { SERVER_CORE, startNode } from './processes.js'

const WARM_UP_MS = 1200

/**
 * Measures contenders in turn, round by round, so that whatever else the machine does meets them
 * all. A contender is `{ label, app, settings, turns }`; `before` runs ahead of each of its turns.
 */
export async function measure(bench, contenders, { rounds, durationMs }) {
  const servers = await startAll(contenders, bench)
  try {
    const runs = contenders.map(() => [])
    for (const [index, contender] of contenders.entries()) {
      await oneRun(bench, contender, { ...servers[index], durationMs: WARM_UP_MS })
    }
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, contender] of contenders.entries()) {
        runs[index].push(await oneRun(bench, contender, { ...servers[index], durationMs }))
      }
    }
    return contenders.map((contender, index) => ({ ...contender, runs: runs[index] }))
  } finally {
    await Promise.all(servers.map(({ node }) => node.stop()))
  }
}

export async function startApp({ app, settings }, bench, flags = []) {
  const given = JSON.stringify({ ...bench.settings, ...settings })
  const file = new URL('serve.js', import.meta.url).pathname
  const node = startNode(SERVER_CORE, file, [app, given], flags)
  const { port } = await node.answer()
  return { node, port }
}

async function startAll(contenders, bench) {
  const servers = []
  for (const contender of contenders) servers.push(await startApp(contender, bench))
  return servers
}

async function oneRun(bench, { label, turns, before }, { node, port, durationMs }) {
  await before?.()
  const start = await node.ask({})
  const run = await bench.load.ask({ run: { port, turns, durationMs } })
  const end = await node.ask({})
  if (run.fault !== undefined) throw new Error(`${label} answered otherwise: ${run.fault}`)
  const cpu = (end.cpuMicroseconds - start.cpuMicroseconds) / run.total
  return { perSecond: run.perSecond, cpu, loadBusy: run.busy }
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

export const ratePerSecond = ({ runs }) => median(runs.map((run) => run.perSecond[0]))
export const cpuPerRequest = ({ runs }) => median(runs.map((run) => run.cpu))

/** The ratio of each round: its two runs stood next to each other in time. */
export function ratioOf(measured, base, figureOf = (run) => run.perSecond[0]) {
  const ratios = measured.runs.map((run, round) => figureOf(run) / figureOf(base.runs[round]))
  return { median: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) }
}

/** The same by what the servers spent on a request, which other work on the machine disturbs less. */
export const cpuRatioOf = (measured, base) => ratioOf(measured, base, (run) => 1 / run.cpu)
