import { SERVER_CORE, startNode } from './processes.js'

/** Each heat starts new server processes: two of the same program differ by some hundredths. */
const HEATS = 3
/** Many and short: on a busy machine some of them are left alone. */
const TURNS_PER_HEAT = Number(process.env.BENCH_TURNS ?? 30)
const TURN_MS = Number(process.env.BENCH_MS ?? 100)
const WARM_UP_MS = 1000

/**
 * Lets all contenders take turns, so that whatever else the machine does meets them all. Resolves to
 * what a request cost each of them, in microseconds of processor time: heats of turns. A contender is
 * `{ app, settings, requests, before, warmUpMs, tls }`; `before` runs ahead of each of its turns, and `tls`
 * is how the load connects. A server that is sent several kinds of requests is charged with all of them; only
 * the first kind is counted.
 */
export async function measure(bench, contenders) {
  const heats = []
  for (let heat = 0; heat < HEATS; heat += 1) heats.push(await runHeat(bench, contenders))
  return contenders.map((_, index) => heats.map((costs) => costs[index]))
}

async function runHeat(bench, contenders) {
  const servers = []
  try {
    for (const contender of contenders) servers.push(await startServer(bench, contender))
    for (const server of servers) {
      await takeTurn(bench, server, server.contender.warmUpMs ?? WARM_UP_MS)
    }
    const costs = servers.map(() => [])
    for (let turn = 0; turn < TURNS_PER_HEAT; turn += 1) {
      for (const [index, server] of servers.entries()) {
        costs[index].push(await takeTurn(bench, server, TURN_MS))
      }
    }
    return costs
  } finally {
    await Promise.all(servers.map(({ node }) => node.stop()))
  }
}

async function startServer(bench, contender) {
  return { ...(await startApp(bench, contender)), contender }
}

/** Starts an app of `apps/` in a process of its own; `flags` are for Node. */
export async function startApp(bench, { app, settings, flags }) {
  const given = JSON.stringify({ ...bench.settings, ...settings })
  const file = new URL('serve.js', import.meta.url).pathname
  const node = startNode(SERVER_CORE, file, [app, given], flags)
  const { port } = await node.answer()
  return { node, port }
}

async function takeTurn(bench, { node, port, contender }, durationMs) {
  const { requests, before, app, tls } = contender
  await before?.()
  const start = await node.ask({})
  const { counts, fault } = await bench.load.ask({ turn: { port, requests, durationMs, tls } })
  const end = await node.ask({})
  if (fault !== undefined) throw new Error(`${app} answered otherwise: ${fault}`)
  return (end.cpuMicroseconds - start.cpuMicroseconds) / counts[0]
}
